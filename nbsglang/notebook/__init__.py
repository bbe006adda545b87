"""What the magics do, one file for each noun. Only `nbsglang/magics.py`, which registers them, imports this part."""

// A text that scrolls, and follows its end while it grows, unless the reader has scrolled up or has selected some of it.
//
// Not here: the text.

const NEAR = 6; // pixels from the end that count as its end

/** `button` is shown while the end is out of sight and the text may still grow. */
export class End {
  constructor(element, button) {
    this._element = element;
    this._button = button;
    this._may_grow = true;
    this._follows = null; // not decided before there is text
    button.hidden = true;
    button.addEventListener("click", () => this._go());
    element.addEventListener("scroll", () => this._scrolled(), { passive: true });
  }

  /** The text has grown. Looks at the page, so it is done when all views are drawn. */
  grew(may_grow) {
    this._may_grow = may_grow;
    this._follows ??= may_grow;
    queueMicrotask(() => this._keep());
  }

  /** Stay where it is. */
  leave() {
    this._follows = false;
  }

  hide() {
    this._button.hidden = true;
  }

  _keep() {
    const { _element: element } = this;
    const reads = element.ownerDocument.getSelection();
    const is_read = reads !== null && !reads.isCollapsed && element.contains(reads.anchorNode);
    const overflows = element.scrollHeight > element.clientHeight + NEAR;
    if (this._follows && !is_read && overflows) element.scrollTop = element.scrollHeight;
    this._button.hidden = !overflows || this._follows || !this._may_grow;
  }

  _go() {
    this._follows = true;
    this._element.scrollTop = this._element.scrollHeight;
  }

  _scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this._element;
    if (!clientHeight) return;
    this._follows = scrollHeight - clientHeight - scrollTop <= NEAR;
    this._button.hidden = this._follows || !this._may_grow;
  }
}

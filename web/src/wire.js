// Messages from the kernel to feeds: {v: 1, kind, n, from, to, ...} with a buffer of deflated JSON (nbsglang/viz/wire.py).
//
// Messages are read in the order in which they come, whatever the decoder takes for each.
//
// Not here: what a feed makes of them (feed.js).

const MAX_BYTES = 256 * 1024 * 1024; // of one message, unpacked

/** The JSON value in some deflated bytes (with zlib's header). */
export async function unpacked(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let n_bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    n_bytes += value.length;
    if (n_bytes > MAX_BYTES) throw new Error("a message is too large");
    text += decoder.decode(value, { stream: true });
  }
  return JSON.parse(text + decoder.decode());
}

/** The bytes of base64 text. */
export function bytes_of(base64) {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

export class Receiver {
  /** `feed_of(content)` gives the feed of a message; on_other takes messages of other kinds; on_error what fails. */
  constructor({ feed_of, on_other = () => {}, on_error = () => {} }) {
    this._feed_of = feed_of;
    this._on_other = on_other;
    this._on_error = on_error;
    this._chain = Promise.resolve();
  }

  /** Take a message. Returns a promise of when it has been read. */
  take(content, buffers = []) {
    this._chain = this._chain.then(() => this._read(content, buffers)).catch((error) => this._on_error(error));
    return this._chain;
  }

  async _read(content, buffers) {
    if (content?.v !== 1) return;
    if (content.kind !== "delta" && content.kind !== "key") {
      this._on_other(content);
      return;
    }
    const feed = this._feed_of(content);
    if (content.kind === "key" && !feed.wants_key(content.to)) return;
    const was_waiting = feed.waiting;
    const value = await unpacked(buffers[0]);
    if (content.kind === "key") feed.take_key(value);
    else feed.take_delta(value, content.from, content.to);
    if (feed.waiting && !was_waiting) feed.send({ do: "resync" });
  }
}

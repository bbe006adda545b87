// Whether a log is of programs whose backend tells nothing of requests and of a cache.

/** `view` is the state at the end of what is known. */
export function is_cacheless({ streams, ready, loading, requests, nodes }) {
  return streams.size > 0 && ready === null && loading === null && !requests.size && !nodes.size;
}

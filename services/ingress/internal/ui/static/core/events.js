/**
 * Reads a stream of server-sent events.
 * @param {ReadableStream<Uint8Array>} body
 * @param {(name: string, data: string) => void} take gets each event, and a comment as an event without a name
 */
export async function readEvents(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '', name = '', data = [];
  const line = (text) => {
    if (text === '') {
      if (data.length) take(name || 'message', data.join('\n'));
      name = '';
      data = [];
    } else if (text.startsWith(':')) take('', '');
    else if (text.startsWith('event:')) name = text.slice(6).trim();
    else if (text.startsWith('data:')) data.push(text.slice(text[5] === ' ' ? 6 : 5));
  };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop();
    lines.forEach(line);
  }
  if (data.length) take(name || 'message', data.join('\n'));
}

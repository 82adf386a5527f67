// The server: JSON, streams of events, and what goes wrong as problems in words.

/** A problem document (RFC 9457), or the like of it where there was none. */
export class Problem extends Error {
  constructor(document) {
    super(document.title);
    Object.assign(this, { detail: "", hint: "", errors: [], status: 0 }, document);
  }
}

const GONE = {
  title: "The server does not answer",
  detail: "It may have been stopped, or it is just starting.",
  hint: "Start it with: ctx serve",
};

/** Whoever wants to hear that the session is over. */
export const session = new EventTarget();

export async function call(path, { method = "GET", body, signal, accept = "application/json" } = {}) {
  const options = { method, signal, headers: { Accept: accept }, credentials: "same-origin" };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(GONE);
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

export async function getJson(path, options) {
  return read(await call(path, options));
}

async function read(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(GONE);
  }
}

async function problemOf(response) {
  let document = {};
  try {
    document = await response.json();
  } catch {
    // A proxy's page, or nothing.
  }
  const told = { title: `The server said ${response.status}`, ...document, status: response.status };
  if (response.status === 401) session.dispatchEvent(new Event("over"));
  return new Problem(told);
}

/** The server-sent events of an answer, as {name, data}. EventSource can neither post nor tell a status. */
export async function* events(path, options = {}) {
  const response = await call(path, { ...options, accept: "text/event-stream" });
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let held = "";
  let ended = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      ended = done;
      if (done) return;
      held += decoder.decode(value, { stream: true });
      const parts = held.split("\n\n");
      held = parts.pop();
      for (const part of parts) {
        const event = eventOf(part);
        if (event) yield event;
      }
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof Problem) throw error;
    throw new Problem(GONE);
  } finally {
    if (!ended) reader.cancel().catch(() => {}); // whoever listened has heard enough
  }
}

function eventOf(part) {
  let name = "message";
  const data = [];
  for (const line of part.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? { name, data: JSON.parse(data.join("\n")) } : null;
}

/** Files to the server; `onBytes` hears how many have gone. fetch does not tell. */
export function upload(files, onBytes) {
  const form = new FormData();
  for (const file of files) form.append("files", file, file.name);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/api/ingest");
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "text";
    request.upload.onprogress = (event) => onBytes(event.loaded, event.total);
    request.onerror = () => reject(new Problem(GONE));
    request.onload = async () => {
      const response = new Response(request.responseText, { status: request.status });
      if (response.ok) resolve(await read(response));
      else reject(await problemOf(response));
    };
    request.send(form);
  });
}

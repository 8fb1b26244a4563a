// Asks the REST interface. The cookie of the session goes along by itself; what changes something carries its CSRF word.

const PREFIX = "/v1";
let csrf = "";

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || "no answer");
    this.status = status;
    this.code = body.code || "";
    this.remedy = body.remedy || "";
    this.reports = body.reports || [];
  }
}

async function send(method, path, { headers = {}, body } = {}) {
  let answer;
  let read;
  try {
    answer = await fetch(PREFIX + path, {
      method, cache: "no-store", credentials: "same-origin", redirect: "error", signal: AbortSignal.timeout(60_000),
      headers: body === undefined ? headers : { ...headers, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    read = await answer.json();
  } catch (error) {
    throw new Problem(0, { detail: `haclusterd-api does not answer (${error.name})`, remedy: "look at another node" });
  }
  if (!answer.ok) throw new Problem(answer.status, read);
  return { data: read, headers: answer.headers, status: answer.status };
}

function withQuery(path, query) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) if (each !== "" && each !== undefined) words.append(name, each);
  }
  const text = words.toString();
  return text ? `${path}?${text}` : path;
}

export const ask = async (path, query = {}) => (await send("GET", withQuery(path, query))).data;

export const change = (path, body, query = {}, headers = {}) =>
  send("POST", withQuery(path, query), { body, headers: { ...headers, "Haclusterd-Csrf": csrf } });

// Without a token: by a certificate, or a proxy that knows who it is.
export async function signIn(token = "") {
  const { data } = await send("POST", "/session", { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  csrf = data.csrf;
  return data;
}

export async function session() {
  const { data } = await send("GET", "/session");
  csrf = data.csrf;
  return data;
}

// The permission that each verb needs.
export async function permissions() {
  try {
    return await (await fetch("/page/permissions.json", { credentials: "same-origin", redirect: "error" })).json();
  } catch (error) {
    throw new Problem(0, { detail: `haclusterd-api does not answer (${error.name})`, remedy: "look at another node" });
  }
}

export const signOut = () => send("DELETE", "/session", { headers: { "Haclusterd-Csrf": csrf } });

// Calls `happened` with each event of the history, and `state` with how old the node's knowledge is.
export function follow({ happened, state, lost, opened }) {
  const source = new EventSource(`${PREFIX}/events`);
  source.onopen = opened;
  source.onmessage = (message) => happened(JSON.parse(message.data));
  source.addEventListener("missing", () => happened(null));
  source.addEventListener("state", (message) => state(JSON.parse(message.data)));
  source.addEventListener("end", lost);
  source.onerror = lost;
  return source;
}

// Functions of both pages. Values are set as text, never as markup: names and errors come from tables.
"use strict";

const parameters = new URLSearchParams(location.search);
const connection = parameters.get("connection") || "dynamic_table_default";
const base = location.pathname.replace(/\/dynamic-tables\/.*$/, "");

function followTheme() {
  // Airflow stores the choice of theme here; its pages and ours share an origin.
  const chosen = localStorage.getItem("theme");
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
followTheme();
addEventListener("storage", followTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", followTheme);

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key === "dataset") Object.assign(made.dataset, value);
    else if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

async function asked(url, options) {
  const answer = await fetch(url, { credentials: "same-origin", ...options });
  let body = null;
  try { body = await answer.json(); } catch { /* reported below */ }
  if (!answer.ok) {
    const detail = body && (body.error || body.detail);
    throw new Error(typeof detail === "string" ? detail : `${answer.status} ${answer.statusText}`);
  }
  return body;
}

const whole = new Intl.NumberFormat("en");
function count(value) { return value === null || value === undefined ? "" : whole.format(value); }
function bytes(value) {
  if (value === null || value === undefined) return "";
  let size = Number(value);
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (size < 1000 || unit === "TB") return `${unit === "B" ? size : size.toFixed(1)} ${unit}`;
    size /= 1000;
  }
}
function age(millis) {
  if (!millis) return "never";
  const seconds = Math.max(0, (Date.now() - millis) / 1000);
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}
function moment(millis) { return millis ? new Date(millis).toISOString().replace("T", " ").slice(0, 19) + " UTC" : ""; }

function every(seconds, act) {
  // One request at a time, and none while the page is hidden.
  let busy = false;
  async function turn() {
    if (busy || document.hidden) return;
    busy = true;
    try { await act(); } finally { busy = false; }
  }
  setInterval(turn, seconds * 1000);
  document.addEventListener("visibilitychange", turn);
  return turn();
}

function showError(place, error) {
  place.replaceChildren(...(error ? [element("div", { className: "message", role: "alert", textContent: error.message || String(error) })] : []));
}

// ---- a DAG's form with given values, submitted through Airflow's API with the user's permissions ----------------------

async function openForm(dagId, filled) {
  const details = await asked(`${base}/api/v2/dags/${encodeURIComponent(dagId)}/details`);
  const inputs = new Map();
  const fields = Object.entries(details.params || {}).map(([name, param]) => {
    const schema = param.schema || {};
    const types = [].concat(schema.type || "string");
    const value = name in filled ? filled[name] : param.value;
    let input;
    if (schema.enum) input = element("select", {}, ...schema.enum.map((each) => element("option", { textContent: String(each), value: JSON.stringify(each), selected: each === value })));
    else if (types.includes("boolean") && types.includes("null")) input = element("select", {}, ...[[null, "the default of the table"], [true, "yes"], [false, "no"]].map(([each, text]) => element("option", { textContent: text, value: JSON.stringify(each), selected: each === (value ?? null) })));
    else if (types.includes("boolean")) input = element("input", { type: "checkbox", checked: value === true });
    else if (isLines(types, schema)) input = element("textarea", { rows: 3, value: (value || []).join("\n") });
    else if (schema.format === "multiline") input = element("textarea", { rows: 5, value: value || "" });
    else if (types.includes("object") || types.includes("array")) input = element("textarea", { rows: 3, value: value === null || value === undefined ? "" : JSON.stringify(value, null, 1) });
    else input = element("input", { type: types.includes("integer") || types.includes("number") ? "number" : "text", step: "any", value: value === null || value === undefined ? "" : String(value) });
    inputs.set(name, { input, types, schema });
    return element("label", {}, element("span", { textContent: schema.title || name }), input, param.description || schema.description ? element("span", { className: "faint", textContent: param.description || schema.description }) : null);
  });
  const problem = element("div");
  const send = element("button", { className: "primary", type: "submit", textContent: `Run ${dagId}` });
  const form = element("form", { method: "dialog" }, element("h2", { textContent: details.dag_display_name || dagId }), element("p", { className: "faint", textContent: details.description || "" }),
    ...fields, problem, element("div", { className: "bar" }, send, element("button", { type: "button", textContent: "Cancel", onclick: () => dialog.close() }), element("a", { className: "rest", href: `${base}/dags/${encodeURIComponent(dagId)}`, target: "_top", textContent: "Open the DAG" })));
  const dialog = element("dialog", { "aria-label": `Run ${dagId}` }, form);
  dialog.addEventListener("close", () => dialog.remove());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      const conf = {};
      for (const [name, { input, types, schema }] of inputs) conf[name] = valueOf(name, input, types, schema);
      const run = await asked(`${base}/api/v2/dags/${encodeURIComponent(dagId)}/dagRuns`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ logical_date: null, conf }) });
      problem.replaceChildren(element("p", { className: "good" }, "Started: ", element("a", { href: `${base}/dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(run.dag_run_id)}`, target: "_top", textContent: run.dag_run_id })));
    } catch (error) { showError(problem, error); send.disabled = false; }
  });
  document.body.append(dialog);
  dialog.showModal();
}

// As in Airflow's own form, a list of texts has one text per line; other lists are JSON.
function isLines(types, schema) { return types.includes("array") && (schema.items || { type: "string" }).type === "string"; }

function valueOf(name, input, types, schema) {
  if (input.tagName === "SELECT") return JSON.parse(input.value);
  if (input.type === "checkbox") return input.checked;
  const text = input.value.trim();
  if (text === "") {
    if (types.includes("null")) return null;
    if (types.includes("string")) return "";
    throw new Error(`${schema.title || name} is empty`);
  }
  if (input.type === "number") return Number(text);
  if (isLines(types, schema)) return text.split("\n").map((line) => line.trim()).filter((line) => line);
  if (types.includes("object") || types.includes("array")) {
    try { return JSON.parse(text); } catch { throw new Error(`${schema.title || name} is not JSON`); }
  }
  return text;
}

// State of a table's sink and last validation; each may be null.
const SINK_GRADES = { failed: "bad", lost: "bad", silent: "bad", starting: "warn", stopping: "warn" };
function sinkText(sink) { return sink ? sink.state : ""; }
function sinkGrade(sink) { return sink ? SINK_GRADES[sink.state] || (sink.compaction_error || sink.tiering_error ? "warn" : "") : ""; }
function sinkDetail(sink) {
  if (!sink) return "";
  const told = sink.age_seconds === null ? [] : [`heartbeat ${Math.round(sink.age_seconds)} s old`];
  if (sink.batch_id !== undefined) told.push(`batch ${sink.batch_id}`);
  if (sink.row_count !== undefined) told.push(`${count(sink.row_count)} rows`);
  if (sink.rejected_count) told.push(`${count(sink.rejected_count)} rejected`);
  if (sink.skipped_count) told.push(`${count(sink.skipped_count)} skipped`);
  return [...told, sink.error, sink.compaction_error, sink.tiering_error].filter(Boolean).join(", ");
}
function sourceText(source) { return source.error ? source.error : source.lag === null ? "unknown" : source.lag ? `${count(source.lag)} behind` : "in step"; }
function sourcesLines(sources) { return sources && sources.length ? sources.map((source) => `${source.source}: ${sourceText(source)}`).join("\n") : undefined; }
// Topics that are read into a table: how far it is behind them, and how many of their records were rejected.
function sourcesText(row) {
  const sources = row.sources || [];
  const behind = sources.reduce((sum, source) => sum + (source.lag || 0), 0);
  const state = !sources.length ? "" : sources.some((source) => source.error) ? "unreachable" : behind ? `${count(behind)} behind` : "in step";
  return [state, row.rejected_count ? `${count(row.rejected_count)} rejected` : ""].filter(Boolean).join(", ");
}
function sourcesGrade(row) { return (row.sources || []).some((source) => source.error) ? "bad" : row.rejected_count ? "warn" : ""; }
function validationText(found) {
  if (!found) return "";
  const failed = (found.failed.critical || 0) + (found.failed.warning || 0) + (found.failed.info || 0);
  return failed ? `${failed} of ${found.checked} not met` : `${age(found.millis)} ago`;
}
function validationGrade(found) { return !found ? "" : found.failed.critical ? "bad" : found.failed.warning ? "warn" : ""; }
function validationLines(found) { return found && found.lines.length ? found.lines.join("\n") : undefined; }

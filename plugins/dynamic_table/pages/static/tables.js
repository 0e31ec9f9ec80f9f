"use strict";

const COLUMNS = [
  { key: "name", title: "Table" },
  { key: "change_millis", title: "Newest change", number: true, shown: (row) => age(row.change_millis), grade: () => "" },
  { key: "lag", title: "Log", number: true, shown: (row) => logText(row.log), grade: (row) => (row.log.state === "error" ? "bad" : "") },
  { key: "row_count", title: "Rows", number: true, shown: (row) => count(row.row_count) },
  { key: "size_bytes", title: "Size", number: true, shown: (row) => bytes(row.size_bytes) },
  { key: "file_count", title: "Files", number: true, shown: (row) => count(row.file_count) },
  { key: "runs_max", title: "Runs per bucket", number: true, shown: (row) => count(row.runs_max), grade: (row) => (row.runs_max > 20 ? "bad" : row.runs_max > 8 ? "warn" : "") },
  { key: "compaction_millis", title: "Compacted", number: true, shown: (row) => (row.compaction_millis ? `${age(row.compaction_millis)} ago` : "never") },
  { key: "validated", title: "Validated", number: true, shown: (row) => validationText(row.validation), grade: (row) => validationGrade(row.validation) },
  { key: "sources_lag", title: "Topics read", number: true, shown: (row) => sourcesText(row), grade: (row) => sourcesGrade(row) },
  { key: "sink_state", title: "Sink", shown: (row) => sinkText(row.sink), grade: (row) => sinkGrade(row.sink) },
  { key: "lease_held_by", title: "Lease held by", shown: (row) => row.lease_held_by || "" },
];
const LOOKS_MAX = 10;
const state = { rows: [], sort: "name", descending: false };
const byId = (id) => document.getElementById(id);

function logText(log) {
  if (log.state === "none") return "none";
  if (log.state === "asked") return "…";
  if (log.state === "error") return "unreachable";
  return log.lag === null ? "in step" : `${count(log.lag)} behind`;
}

function sortValue(row, key) {
  if (key === "lag") return row.log && row.log.lag ? row.log.lag : 0;
  if (key === "sources_lag") return (row.sources || []).reduce((sum, source) => sum + (source.lag || 0), row.rejected_count || 0);
  const value = row[key];
  return value === undefined || value === null ? -Infinity : value;
}

// A table that can't be read, or one of whose values is shown in the colour of a warning or an error.
function needsAttention(row) {
  if (row.error) return true;
  if (row.is_late && row.file_count === undefined) return false;
  return COLUMNS.some((column) => column.grade && ["warn", "bad"].includes(column.grade(row)));
}

function draw() {
  const wanted = byId("search").value.trim().toLowerCase();
  const onlyAttention = byId("attention").checked;
  const rows = state.rows
    .map((row) => ({ ...row, validated: row.validation ? row.validation.millis : null, sink_state: sinkText(row.sink) }))
    .filter((row) => !onlyAttention || needsAttention(row))
    .filter((row) => !wanted || [row.name, row.error, row.lease_held_by, row.sink_state].some((text) => (text || "").toLowerCase().includes(wanted)));
  rows.sort((left, right) => {
    const [one, two] = [sortValue(left, state.sort), sortValue(right, state.sort)];
    const order = typeof one === "string" && typeof two === "string" ? one.localeCompare(two, undefined, { numeric: true }) : one < two ? -1 : one > two ? 1 : 0;
    return (state.descending ? -order : order) || left.name.localeCompare(right.name, undefined, { numeric: true });
  });
  byId("rows").replaceChildren(...rows.map(drawRow));
  const broken = state.rows.filter((row) => row.error).length;
  const attention = state.rows.filter(needsAttention).length;
  byId("summary").textContent = `${rows.length} of ${state.rows.length} tables${broken ? `, ${broken} broken` : ""}${attention ? `, ${attention} need attention` : ""}`;
  for (const head of byId("head").children) head.setAttribute("aria-sort", head.dataset.key === state.sort ? (state.descending ? "descending" : "ascending") : "none");
}

function drawRow(row) {
  const link = element("a", { href: `table?${new URLSearchParams({ name: row.name, connection })}`, textContent: row.name });
  const cells = [element("td", { dataset: { label: "Table" } }, link)];
  if (row.is_late && row.file_count === undefined && !row.error) cells.push(element("td", { className: "late", colSpan: COLUMNS.length - 1, textContent: "…", dataset: { label: "Health" } }));
  else if (row.error) cells.push(element("td", { className: "bad", colSpan: COLUMNS.length - 1, textContent: row.error, dataset: { label: "Error" } }));
  else for (const column of COLUMNS.slice(1)) {
    const title = column.key === "lag" ? row.log.error : column.key === "sink_state" ? (row.sink || {}).error : column.key === "sources_lag" ? sourcesLines(row.sources) : column.key === "validated" ? validationLines(row.validation) : column.key.endsWith("_millis") ? moment(row[column.key]) : undefined;
    cells.push(element("td", { className: `${column.number ? "number" : ""} ${column.key === "sink_state" ? "word" : ""} ${column.grade ? column.grade(row) : ""}`, textContent: column.shown(row), title, dataset: { label: column.title } }));
  }
  return element("tr", {}, ...cells);
}

async function refresh() {
  // Request late tables again at once instead of after the next interval; LOOKS_MAX bounds this if a table hangs.
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    await lookOnce();
    if (!state.rows.some((row) => row.is_late)) break;
  }
}

async function lookOnce() {
  try {
    state.rows = (await asked(`api/tables?${new URLSearchParams({ connection })}`)).tables;
    showError(byId("problem"), null);
    byId("updated").textContent = `updated ${moment(Date.now())}`;
  } catch (error) { showError(byId("problem"), error); }
  draw();
}

byId("head").append(...COLUMNS.map((column) => element("th", { className: column.number ? "number" : "", scope: "col", dataset: { key: column.key }, "aria-sort": "none" },
  element("button", { type: "button", textContent: column.title, onclick: () => {
    if (state.sort === column.key) state.descending = !state.descending;
    else Object.assign(state, { sort: column.key, descending: column.number === true });
    draw();
  } }))));
byId("search").addEventListener("input", draw);
byId("attention").addEventListener("change", draw);
addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) { event.preventDefault(); byId("search").focus(); }
});
every(5, refresh);

"use strict";

const name = parameters.get("name") || "";
const byId = (id) => document.getElementById(id);
const LEVEL_COLOURS = ["#e8590c", "#f59f00", "#74b816", "#12b886", "#1c7ed6", "#7048e8", "#ae3ec9"];
let chart = null;

function card(title, value, className = "") { return element("div", { className: "card" }, element("b", { textContent: value, className }), element("span", { textContent: title })); }

function drawCards(view) {
  const { health, describe } = view;
  const lag = describe["log records not yet in files"];
  byId("cards").replaceChildren(
    card("newest change", health.change_millis ? `${age(health.change_millis)} ago` : "none"),
    card("snapshot", health.snapshot_id === null ? "none" : `${health.snapshot_id} · ${health.commit_kind}`),
    card("rows in files, unmerged", count(health.row_count)),
    card("size", bytes(health.size_bytes)),
    card("files", count(health.file_count)),
    card("most runs in a bucket", count(health.runs_max), health.runs_max > 20 ? "bad" : health.runs_max > 8 ? "warn" : ""),
    card("last compaction", health.compaction_millis ? `${age(health.compaction_millis)} ago` : "never"),
    card("log", describe["log.system"] === "none" ? "none" : (describe["log end"] || "").startsWith("unknown") ? "unreachable" : lag === undefined ? "in step" : `${count(Number(lag))} behind`,
      (describe["log end"] || "").startsWith("unknown") ? "bad" : ""),
    card("lease held by", describe["lease held by"] || "nobody"),
    card("sink", sinkText(view.sink) || "none", sinkGrade(view.sink)),
    card("validated", validationText(view.validation) || "never", validationGrade(view.validation)),
    card("tags, branches", `${view.tags.length}, ${view.branches.length}`),
  );
}

function drawHistory(view) {
  const rows = view.snapshots;
  if (!rows.length) { byId("history").replaceChildren(element("p", { className: "faint", textContent: "No snapshot yet." })); return; }
  const data = [rows.map((row) => row.commit_time / 1000), rows.map((row) => row.total_record_count), rows.map((row) => row.delta_record_count)];
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--faint").trim(), line = style.getPropertyValue("--line").trim();
  const axis = (more) => ({ stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line }, ...more });
  const place = byId("history");
  if (chart) chart.destroy();
  chart = new uPlot({
    width: place.clientWidth || 800, height: 240,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: { x: { time: true }, delta: {} },
    axes: [axis({}), axis({ size: 70 }), axis({ scale: "delta", side: 1, size: 70, grid: { show: false } })],
    series: [{}, { label: "rows in files", stroke: style.getPropertyValue("--accent").trim(), width: 2, points: { show: rows.length < 60 } },
      { label: "rows of the commit", scale: "delta", stroke: "#f59f00", paths: uPlot.paths.bars({ size: [0.6, 12] }), fill: "#f59f0055" }],
  }, data, place);
  const kinds = {};
  for (const row of rows) kinds[row.commit_kind] = (kinds[row.commit_kind] || 0) + 1;
  byId("kinds").textContent = `${rows.length} snapshots kept: ` + Object.entries(kinds).map(([kind, number]) => `${number} ${kind}`).join(", ");
}

function segments(level, largest) {
  // At level 0 each file is a sorted run; every other level is one run.
  const pieces = level.level === 0 ? Math.min(level.files, 50) : 1;
  const title = `level ${level.level}: ${level.files} files, ${bytes(level.bytes)}`;
  const style = `width:${(100 * level.bytes) / largest / pieces}%;background:${LEVEL_COLOURS[level.level % LEVEL_COLOURS.length]}`;
  return Array.from({ length: pieces }, () => element("i", { title, style }));
}

function drawBuckets(view) {
  const largest = Math.max(1, ...view.buckets.map((bucket) => bucket.bytes));
  const rows = view.buckets.map((bucket) => {
    const levels = element("div", { className: "levels", role: "img", "aria-label": bucket.levels.map((level) => `level ${level.level}: ${level.files} files`).join(", ") },
      ...bucket.levels.flatMap((level) => segments(level, largest)));
    return element("tr", {}, element("td", { textContent: bucket.partition || "(whole table)", dataset: { label: "Partition" } }), element("td", { className: "number", textContent: bucket.bucket, dataset: { label: "Bucket" } }),
      element("td", { className: "number", textContent: bucket.runs, dataset: { label: "Runs" } }), element("td", { className: "number", textContent: bytes(bucket.bytes), dataset: { label: "Size" } }), element("td", { dataset: { label: "Levels" } }, levels));
  });
  const head = element("thead", {}, element("tr", {}, ...["Partition", "Bucket", "Runs", "Size", "Levels"].map((title, place) => element("th", { scope: "col", textContent: title, className: place > 0 && place < 4 ? "number" : "" }))));
  byId("buckets").replaceChildren(rows.length ? element("table", { className: "stacked" }, head, element("tbody", {}, ...rows.slice(0, 20))) : element("p", { className: "faint", textContent: "No file yet." }),
    element("p", { className: "faint", textContent: `${Math.min(20, rows.length)} of ${view.bucket_count} buckets, those with most runs first` }));
}

function partitionText(row, columns) { return columns.map((column) => `${column}=${row.values[column]}`).join(", "); }

function drawPartitions(view) {
  const columns = view.partition_columns;
  if (!columns.length) { byId("partitions").replaceChildren(element("p", { className: "faint", textContent: "The table has no partitions." })); return; }
  const rows = [...view.partitions].sort((left, right) => partitionText(left, columns).localeCompare(partitionText(right, columns), undefined, { numeric: true }));
  const largest = Math.max(1, ...rows.map((row) => row.file_size_in_bytes));
  const told = element("p", { className: "faint", role: "status", textContent: `${view.partition_count} partitions; the darker, the larger. Click one for details.` });
  const cells = rows.map((row) => {
    const text = `${partitionText(row, columns)}: ${count(row.record_count)} rows, ${count(row.file_count)} files, ${bytes(row.file_size_in_bytes)}`;
    const share = 20 + Math.round((80 * row.file_size_in_bytes) / largest);
    return element("button", { type: "button", title: text, "aria-label": text, style: `background:color-mix(in srgb, var(--bar) ${share}%, var(--back))`, onclick: () => {
      told.replaceChildren(text + " ", element("button", { type: "button", textContent: "Re-process", onclick: () => act("reprocess", { column: columns[0], day: String(row.values[columns[0]]) }) }));
    } });
  });
  byId("partitions").replaceChildren(element("div", { className: "heat" }, ...cells), told);
}

function drawBeside(view) {
  const { sink, validation } = view;
  const told = [];
  if (sink) {
    const task = sink.task ? [" ", taskLink(sink.task, "its task and log")] : [];
    told.push(element("p", { className: sinkGrade(sink) }, `Sink ${sink.job}: ${sinkText(sink)}, ${sinkDetail(sink)}`, ...task, element("span", { className: "faint", textContent: ` (its own output: ${sink.log})` })));
  }
  if (validation) {
    const where = validation.partition ? ` of ${Object.entries(validation.partition).map(([key, value]) => `${key}=${value}`).join(", ")}` : "";
    told.push(element("p", { className: validationGrade(validation) }, `Validated at snapshot ${validation.snapshot_id}: ${validation.checked} expectations, ${count(validation.rows)} rows${where}, ${age(validation.millis)} ago. `,
      ...(validation.url ? [element("a", { href: validation.url, target: "_blank", rel: "noopener", textContent: "Data Docs" })] : [])));
    if (validation.lines.length) told.push(element("ul", {}, ...validation.lines.map((line) => element("li", { textContent: line }))));
  }
  byId("related").replaceChildren(...(told.length ? told : [element("p", { className: "faint", textContent: "No sink, no validation." })]));
}

function drawSources(view) {
  const { sources, health } = view;
  byId("topics").hidden = !sources.length && !health.rejected_count;
  const lines = sources.map((source) => element("li", { className: source.error ? "bad" : "", textContent: `${source.source}: ${sourceText(source)}` }));
  const rejected = health.rejected_count ? [element("p", { className: "warn", textContent: `${count(health.rejected_count)} rejected ${health.rejected_count === 1 ? "record" : "records"}: SELECT * FROM ${name}$rejected lists them, Re-ingest rejected writes them after a fix.` })] : [];
  byId("sources").replaceChildren(element("ul", {}, ...lines), ...rejected);
}

function drawColumnChanges(view) {
  byId("columns").hidden = !view.column_changes.length;
  const lines = view.column_changes.map((change) => element("li", { title: moment(change.millis), textContent: `${change.what}, ${age(change.millis)} ago` }));
  byId("changes").replaceChildren(element("ul", {}, ...lines));
}

function drawDescription(view) {
  byId("describe").replaceChildren(...Object.entries(view.describe).filter(([, value]) => value !== "").flatMap(([key, value]) => [element("dt", { textContent: key }), element("dd", { textContent: value })]));
}

// The partition column is known once the table has been read.
let partitionColumn = {};
function act(dagId, filled) { openForm(dagId, { table: name, ...partitionColumn, ...filled }).catch((error) => showError(byId("problem"), error)); }

function drawActions(materialized) {
  const button = (title, dagId, filled) => element("button", { type: "button", textContent: title, onclick: () => act(dagId, filled) });
  const compact = button("Compact and expire", "maintain", { tables: [name] }), validate = button("Validate", "validate", {});
  // Only refreshes write a materialized table.
  const others = materialized ? refreshButtons(button, materialized)
    : [button("Re-process", "reprocess", {}), button("Drop old partitions", "drop_old_partitions", {}), button("Stream", "stream", {}), button("Re-ingest rejected", "reingest", {})];
  byId("actions").replaceChildren(compact, validate, ...others);
}

function taskLink(task, text) {
  const mapped = task.map_index >= 0 ? `/mapped/${task.map_index}` : "";
  const href = `${base}/dags/${encodeURIComponent(task.dag_id)}/runs/${encodeURIComponent(task.run_id ?? task.dag_run_id)}/tasks/${encodeURIComponent(task.task_id)}${mapped}`;
  return element("a", { target: "_top", href, textContent: text });
}

// Tasks that have failed or have not ended: those of runs whose form names the table, and mapped tasks labelled with it.
const UNFINISHED = ["running", "deferred", "queued", "up_for_retry", "up_for_reschedule", "awaiting_input", "failed"];

async function drawUnfinished() {
  const place = byId("unfinished");
  try {
    const states = UNFINISHED.map((state) => `state=${state}`).join("&");
    const [runs, tasks] = await Promise.all([
      asked(`${base}/api/v2/dags/~/dagRuns?state=running&state=queued&state=failed&order_by=-run_after&limit=100`),
      asked(`${base}/api/v2/dags/~/dagRuns/~/taskInstances?${states}&order_by=-start_date&limit=100`),
    ]);
    const ofTable = new Set(runs.dag_runs.filter((run) => isOfTable(run)).map((run) => `${run.dag_id} ${run.dag_run_id}`));
    const wanted = tasks.task_instances.filter((task) => ofTable.has(`${task.dag_id} ${task.dag_run_id}`) || isLabelled(task.rendered_map_index)).slice(0, 20);
    const rows = wanted.map((task) => element("tr", {}, element("td", { textContent: moment(Date.parse(task.start_date)), dataset: { label: "Since" } }),
      element("td", { dataset: { label: "Task" } }, taskLink(task, `${task.dag_id} · ${task.task_id}`)), element("td", { className: task.state === "failed" ? "bad" : task.state === "up_for_retry" ? "warn" : "", textContent: task.state.replaceAll("_", " "), dataset: { label: "State" } })));
    const head = element("thead", {}, element("tr", {}, ...["Since", "Task", "State"].map((title) => element("th", { scope: "col", textContent: title }))));
    place.replaceChildren(rows.length ? element("table", { className: "stacked" }, head, element("tbody", {}, ...rows)) : element("p", { className: "faint", textContent: "No task of this table runs or has failed lately." }));
  } catch (error) { place.replaceChildren(element("p", { className: "faint", textContent: `Runs can't be read: ${error.message}` })); }
}

function isOfTable(run) {
  const conf = run.conf || {};
  return run.dag_id === `refresh.${name}` || conf.table === name || (Array.isArray(conf.tables) && conf.tables.includes(name));
}

function isLabelled(label) { return label === name || (label || "").startsWith(`${name} `); }

async function drawRuns() {
  const [database, table] = name.split(".");
  try {
    const found = await asked(`${base}/api/v2/assets?uri_pattern=${encodeURIComponent(`dynamic-table://${database}/${table}`)}&limit=20`);
    const wanted = found.assets.filter((asset) => asset.uri.replace(/\/$/, "") === `dynamic-table://${database}/${table}` || asset.uri.startsWith(`dynamic-table://${database}/${table}/`));
    const events = (await Promise.all(wanted.map((asset) => asked(`${base}/api/v2/assets/events?asset_id=${asset.id}&limit=20&order_by=-timestamp`)))).flatMap((answer) => answer.asset_events);
    events.sort((left, right) => right.timestamp.localeCompare(left.timestamp));
    const rows = events.slice(0, 20).map((event) => {
      const run = event.source_run_id ? element("a", { target: "_top", href: `${base}/dags/${encodeURIComponent(event.source_dag_id)}/runs/${encodeURIComponent(event.source_run_id)}`, textContent: `${event.source_dag_id} · ${event.source_task_id}` }) : "a watcher";
      const extra = event.extra || {};
      return element("tr", {}, element("td", { textContent: moment(Date.parse(event.timestamp)), dataset: { label: "When" } }), element("td", { dataset: { label: "Run" } }, run), element("td", { textContent: extra.op || "", dataset: { label: "What" } }), element("td", { className: "number", textContent: extra.version ?? "", dataset: { label: "Snapshot" } }));
    });
    const head = element("thead", {}, element("tr", {}, ...["When", "Run", "What", "Snapshot"].map((title) => element("th", { scope: "col", textContent: title, className: title === "Snapshot" ? "number" : "" }))));
    byId("runs").replaceChildren(rows.length ? element("table", { className: "stacked" }, head, element("tbody", {}, ...rows)) : element("p", { className: "faint", textContent: "No Airflow task has reported a commit to this table." }));
  } catch (error) { byId("runs").replaceChildren(element("p", { className: "faint", textContent: `Asset events can't be read: ${error.message}` })); }
}

let drawn = null, actionsOf;
async function refresh() {
  try {
    const view = await asked(`api/table?${new URLSearchParams({ name, connection })}`);
    showError(byId("problem"), null);
    drawCards(view);
    if (view.partition_columns.length) partitionColumn = { column: view.partition_columns[0] };
    const status = view.materialized && view.materialized.status;
    if (status !== actionsOf) { drawActions(view.materialized); actionsOf = status; }
    drawDefinition(view.materialized);
    drawBeside(view);
    drawSources(view);
    drawColumnChanges(view);
    drawDescription(view);
    const version = JSON.stringify([view.health.snapshot_id, document.documentElement.dataset.theme, innerWidth]);
    if (version !== drawn) { drawHistory(view); drawBuckets(view); drawPartitions(view); drawn = version; }
  } catch (error) { showError(byId("problem"), error); }
}

document.title = name;
byId("title").textContent = name;
byId("back").href = `tables?${new URLSearchParams({ connection })}`;
addEventListener("DOMContentLoaded", () => {
  drawActions(null);
  actionsOf = null;
  every(5, refresh);
  every(15, drawRuns);
  every(15, drawUnfinished);
  every(15, drawRefreshes);
  every(30, drawGraph);
});

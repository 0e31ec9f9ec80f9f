// The parts of a table's page about its query: definition, last refreshes, and the tables up and down stream.
"use strict";

let isMaterialized = false;

function refreshButtons(button, materialized) {
  return [
    button("Refresh", `refresh.${name}`, { even_if_suspended: materialized.status === "suspended" }),
    materialized.status === "suspended" ? button("Resume", "change_refresh_status", { change: "resume" }) : button("Suspend", "change_refresh_status", { change: "suspend" }),
  ];
}

function drawDefinition(materialized) {
  const appears = materialized && !isMaterialized;
  isMaterialized = Boolean(materialized);
  byId("materialized").hidden = !isMaterialized;
  if (!materialized) return;
  const fresh = materialized.is_refreshed_by_readers ? "target lag downstream: refreshed before the materialized tables that read it, or by hand" : materialized.freshness_seconds === null ? "no freshness: refreshed after a commit of a source, or by hand" : `freshness ${count(materialized.freshness_seconds)} s`;
  byId("refreshing").replaceChildren(element("span", { className: materialized.status === "suspended" ? "warn" : "", textContent: `${materialized.status}, refresh mode ${materialized.refresh_mode}, ${fresh}, names without a database: ${materialized.database}` }));
  byId("query").textContent = materialized.query;
  if (appears) drawRefreshes();
}

function headOf(titles, numbers) {
  return element("thead", {}, element("tr", {}, ...titles.map((title) => element("th", { scope: "col", textContent: title, className: numbers.includes(title) ? "number" : "" }))));
}

function cell(label, content, className = "") { return element("td", { className, dataset: { label } }, content); }

function readText(rows) { return Object.entries(rows || {}).map(([source, number]) => `${source} ${count(number)}`).join(", "); }

async function lastRun() {
  const dag = `refresh.${name}`;
  const { dag_runs: [run] } = await asked(`${base}/api/v2/dags/${encodeURIComponent(dag)}/dagRuns?order_by=-run_after&limit=1`);
  if (!run) return element("p", { className: "faint", textContent: `${dag} has not run yet.` });
  const link = element("a", { target: "_top", href: `${base}/dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(run.dag_run_id)}`, textContent: run.dag_run_id });
  return element("p", { className: run.state === "failed" ? "bad" : "" }, `Last run: ${run.state}, `, link);
}

async function drawRefreshes() {
  if (!isMaterialized) return;
  const uri = `dynamic-table://${name.replace(".", "/")}`;
  try {
    const found = await asked(`${base}/api/v2/assets?uri_pattern=${encodeURIComponent(uri)}&limit=20`);
    const assets = found.assets.filter((asset) => asset.uri.replace(/\/$/, "") === uri);
    const events = (await Promise.all(assets.map((asset) => asked(`${base}/api/v2/assets/events?asset_id=${asset.id}&limit=50&order_by=-timestamp`)))).flatMap((answer) => answer.asset_events);
    const rows = events.filter((event) => (event.extra || {}).op === "refresh").slice(0, 20).map(({ timestamp, extra }) => element("tr", {},
      cell("When", moment(Date.parse(timestamp))), cell("Mode", extra.mode || ""), cell("Rows read", readText(extra.rows_read)), cell("Rows written", count(extra.rows_written), "number"),
      cell("Seconds", extra.seconds === undefined ? "" : String(extra.seconds), "number"), cell("Snapshot", String(extra.version ?? ""), "number"), cell("Reason", extra.mode === "full" ? extra.reason || "" : "")));
    const table = rows.length ? element("table", { className: "stacked" }, headOf(["When", "Mode", "Rows read", "Rows written", "Seconds", "Snapshot", "Reason"], ["Rows written", "Seconds", "Snapshot"]), element("tbody", {}, ...rows))
      : element("p", { className: "faint", textContent: "No Airflow task has refreshed this table." });
    const last = await lastRun().catch((error) => element("p", { className: "faint", textContent: `Its DAG can't be read: ${error.message}` }));
    byId("refreshes").replaceChildren(last, table);
  } catch (error) { byId("refreshes").replaceChildren(element("p", { className: "faint", textContent: `Asset events can't be read: ${error.message}` })); }
}

function lagText(edges) {
  return edges.map((edge) => {
    if (edge.error) return edge.error;
    if (edge.newest === undefined) return `${edge.source}: missing`;
    if (!edge.is_behind) return `${edge.source}: current`;
    return `${edge.source}: holds snapshot ${edge.held ?? "none"} of ${edge.newest}${edge.behind_since_millis ? `, behind for ${age(edge.behind_since_millis)}` : ""}`;
  }).join("; ");
}

async function drawGraph() {
  try {
    const graph = await asked(`api/graph?${new URLSearchParams({ name, connection })}`);
    byId("streams").hidden = graph.nodes.length < 2;
    const nodes = [...graph.nodes].sort((left, right) => left.level - right.level || left.name.localeCompare(right.name));
    const rows = nodes.map((node) => {
      const link = element("a", { href: `table?${new URLSearchParams({ name: node.name, connection })}`, textContent: node.name });
      const where = node.level === 0 ? "this table" : `${Math.abs(node.level)} ${node.level < 0 ? "up" : "down"}`;
      const changed = node.error || (node.change_millis ? `${age(node.change_millis)} ago` : "never");
      return element("tr", {}, cell("Level", where), cell("Table", node.level === 0 ? element("b", { textContent: node.name }) : link), cell("Newest change", changed, node.error ? "bad" : ""),
        cell("Status", node.status || "", node.status === "suspended" ? "warn" : ""), cell("Reads", lagText(graph.edges.filter((edge) => edge.table === node.name))));
    });
    byId("graph").replaceChildren(element("table", { className: "stacked" }, headOf(["Level", "Table", "Newest change", "Status", "Reads"], []), element("tbody", {}, ...rows)),
      ...(graph.is_cut || graph.is_late ? [element("p", { className: "faint", textContent: graph.is_cut ? "The nearest tables; there are more." : "Some tables have not been read yet." })] : []));
  } catch (error) { byId("streams").hidden = false; byId("graph").replaceChildren(element("p", { className: "faint", textContent: error.message })); }
}

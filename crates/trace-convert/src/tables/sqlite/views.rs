//! Views of the tables: what SQL can tell of operations that began in each other.
//= docs/tables.md#steps-of-operations

use super::plan::TRACE;

/// A view.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The name of the view in SQL.
    pub name: &'static str,
    /// The names of its columns; of several traces there is the trace's, too.
    pub columns: &'static [&'static str],
}

/// All views.
pub const VIEWS: [View; 2] = [
    View {
        name: "operations",
        columns: &[
            "id",
            "parent_id",
            "root_id",
            "depth",
            "ts",
            "dur",
            "pid",
            "tid",
            "process",
            "thread",
            "category",
            "name",
            "operation_id",
            "args",
        ],
    },
    View { name: "steps", columns: &["id", "name", "step_id", "step", "ts", "dur"] },
];

/// The statements that make the views in a database.
pub(super) fn definitions(database: &str, has_traces: bool) -> String {
    // Of one trace, a file that was saved has no column for it.
    let (trace, and_trace, of_parts) = match has_traces {
        true => {
            (format!(", {TRACE}"), format!(" AND parent.{TRACE} = part.{TRACE}"), format!(", part.{TRACE}"))
        }
        false => Default::default(),
    };
    let columns = VIEWS[0].columns.join(", ");
    // An id may be used again: the operation is the one that began last. A part is behind it in the order of
    // begins, then of lengths, so that none is in itself.
    let linked = format!(
        "linked AS MATERIALIZED (
            SELECT part.id AS part_id, parent.id AS id, max(parent.ts) AS first{of_parts}
            FROM parts AS part JOIN whole AS parent ON parent.pid = part.pid
                AND parent.operation_id = part.parent_operation_id{and_trace}
                AND (parent.ts, -parent.dur, parent.id) < (part.ts, -part.dur, part.id)
            GROUP BY part.id{of_parts})"
    );
    let on_trace = |one: &str, other: &str| match has_traces {
        true => format!(" AND {one}.{TRACE} = {other}.{TRACE}"),
        false => String::new(),
    };
    format!(
        "CREATE VIEW {database}.operations AS WITH RECURSIVE
        whole AS MATERIALIZED (
            SELECT id, ts, dur, pid, tid, process, thread, category, name, operation_id, parent_operation_id,
                args{trace}
            FROM slices WHERE kind = 'operation'),
        parts AS (SELECT * FROM whole WHERE parent_operation_id IS NOT NULL),
        {linked},
        tree(id, parent_id, root_id, depth{trace}) AS (
            SELECT whole.id, NULL, whole.id, 0{of_whole}
            FROM whole LEFT JOIN linked ON linked.part_id = whole.id{linked_of_whole}
            WHERE linked.part_id IS NULL
            UNION ALL
            SELECT linked.part_id, linked.id, tree.root_id, tree.depth + 1{of_tree}
            FROM tree JOIN linked ON linked.id = tree.id{linked_of_tree})
        SELECT {columns}{trace} FROM tree JOIN whole USING (id{trace});
        CREATE VIEW {database}.steps AS WITH
        whole AS MATERIALIZED (
            SELECT id, name, ts, dur, pid, operation_id{trace} FROM slices WHERE kind = 'operation'),
        parts AS MATERIALIZED (
            SELECT id, name, ts, dur, pid, parent_operation_id{trace} FROM slices
            WHERE parent_operation_id IS NOT NULL),
        {linked},
        steps AS MATERIALIZED (
            SELECT whole.id, whole.name, parts.id AS step_id, parts.name AS step, parts.ts, parts.dur,
                whole.ts AS first, whole.ts + whole.dur AS last{of_whole}
            FROM linked JOIN whole ON whole.id = linked.id{linked_of_whole}
                JOIN parts ON parts.id = linked.part_id{linked_of_parts}),
        edges AS (
            SELECT id, name, first, last, ts, ts + dur AS ts_end{trace} FROM steps
            UNION ALL SELECT id, name, ts, ts + dur, ts + dur, ts + dur{trace} FROM whole),
        gaps AS (
            SELECT id, name, min(ts, last) AS ts_end, max(first, coalesce(max(ts_end) OVER (
                PARTITION BY id{trace} ORDER BY ts, ts_end ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), first)) AS ts{trace} FROM edges)
        SELECT id, name, step_id, step, ts, dur{trace} FROM steps
        UNION ALL SELECT id, name, NULL, NULL, ts, ts_end - ts{trace} FROM gaps WHERE ts_end > ts;",
        of_whole = if has_traces { format!(", whole.{TRACE}") } else { String::new() },
        of_tree = if has_traces { format!(", tree.{TRACE}") } else { String::new() },
        linked_of_whole = on_trace("linked", "whole"),
        linked_of_tree = on_trace("linked", "tree"),
        linked_of_parts = on_trace("linked", "parts"),
    )
}

//! Tables that fit into the width of a terminal: columns are left out, the least important first, and texts
//! are cut.

use console::{measure_text_width, pad_str, truncate_str};
use std::borrow::Cow;

const GAP: usize = 2;
/// A text is not cut below this width.
const MIN_TEXT: usize = 8;

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub header: &'static str,
    /// Texts stand at the left, numbers at the right.
    pub is_text: bool,
    /// The lower ones are left out first.
    pub rank: u8,
}

/// A column of texts.
pub const fn text(header: &'static str, rank: u8) -> Column {
    Column { header, is_text: true, rank }
}

/// A column of numbers.
pub const fn number(header: &'static str, rank: u8) -> Column {
    Column { header, is_text: false, rank }
}

/// The lines of a table, the header first. The first column is always there.
pub fn lines(columns: &[Column], rows: &[Vec<String>], width: usize) -> Vec<String> {
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let natural: Vec<usize> = (0..columns.len())
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| measure_text_width(cell));
            cells.chain([measure_text_width(columns[column].header)]).max().unwrap_or(0)
        })
        .collect();
    // What a column needs at least.
    let least = |column: usize| match columns[column].is_text {
        true => natural[column].min(MIN_TEXT),
        false => natural[column],
    };
    let needed = |shown: &[usize]| {
        shown.iter().map(|column| least(*column)).sum::<usize>() + GAP * shown.len().saturating_sub(1)
    };
    while shown.len() > 1 && needed(&shown) > width {
        let last = shown.iter().skip(1).min_by_key(|column| columns[**column].rank).copied();
        shown.retain(|column| Some(*column) != last);
    }
    let mut widths: Vec<usize> = shown.iter().map(|column| natural[*column]).collect();
    let mut extra = (widths.iter().sum::<usize>() + GAP * (shown.len() - 1)).saturating_sub(width);
    // The widest text gives way first.
    while extra > 0 {
        let texts = (0..shown.len()).filter(|place| columns[shown[*place]].is_text);
        let Some(widest) = texts.filter(|place| widths[*place] > 1).max_by_key(|place| widths[*place]) else {
            break;
        };
        widths[widest] -= 1;
        extra -= 1;
    }
    let line = |cell: &dyn Fn(usize) -> String| {
        let mut line = String::new();
        for (place, column) in shown.iter().enumerate() {
            let alignment = match columns[*column].is_text {
                true => console::Alignment::Left,
                false => console::Alignment::Right,
            };
            let cell = cell(*column);
            let cut = cut(&cell, widths[place]);
            let padded = pad_str(&cut, widths[place], alignment, None);
            line.push_str(if place > 0 { "  " } else { "" });
            line.push_str(&padded);
        }
        line.truncate(line.trim_end().len());
        cut(&line, width).into_owned()
    };
    let header = line(&|column| columns[column].header.to_owned());
    let rows = rows.iter().map(|row| line(&|column| row.get(column).cloned().unwrap_or_default()));
    std::iter::once(header).chain(rows).collect()
}

/// A text of at most this width.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    let tail = if width > 1 { "…" } else { "" };
    truncate_str(text, width, tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] =
        [text("program", 9), number("pid", 1), number("events", 8), number("lost", 5)];

    fn rows() -> Vec<Vec<String>> {
        [["größerer-server", "4242", "1,000,000", "0"], ["日本", "7", "12", "3"]]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec()
    }

    #[test]
    fn columns_give_way_to_a_narrow_terminal() {
        let at = |width| lines(&COLUMNS, &rows(), width);
        assert_eq!(
            at(80),
            [
                "program           pid     events  lost",
                "größerer-server  4242  1,000,000     0",
                "日本                7         12     3",
            ]
        );
        assert_eq!(
            at(33),
            [
                "program      pid     events  lost",
                "größerer-…  4242  1,000,000     0",
                "日本           7         12     3",
            ]
        );
        assert_eq!(at(20), ["program       events", "größerer…  1,000,000", "日本              12"]);
        assert_eq!(at(5), ["prog…", "größ…", "日本"]);
        for width in 0..100 {
            for line in at(width) {
                assert!(measure_text_width(&line) <= width, "{width}: {line}");
            }
        }
    }
}

//! Tables for people. At a terminal, texts are folded inside their columns, and columns for which a line has
//! no room follow on further lines of the row; elsewhere a row is one line.
//= docs/command-line.md#tables

use crate::shell::stdio;
use console::{Alignment, measure_text_width, pad_str};
use std::ops::Range;

const GAP: usize = 2;
/// A text is not folded below this width while columns can go to another line.
const MIN_TEXT: usize = 16;
/// What a terminal shows as one letter has fewer bytes than this.
const MAX_CLUSTER: usize = 128;
/// By how much further lines of a row are indented.
const FURTHER: usize = 4;
/// The widest padding where rows are not folded: a recording may have thousands of programs.
const MAX_PADDING: usize = 200;

/// A cell: texts stand at the left, numbers at the right.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    is_text: bool,
}

/// A cell with a text, whose controls are escaped.
pub fn text(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), is_text: true }
}

/// A cell with a number, which is folded only if a whole line has no room for it.
pub fn number(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), is_text: false }
}

/// The cells of a row: these columns are texts, the others numbers.
pub fn cells<T: Into<String>>(row: impl IntoIterator<Item = T>, texts: &[usize]) -> Vec<Cell> {
    let cell = |(column, cell)| if texts.contains(&column) { text(cell) } else { number(cell) };
    row.into_iter().enumerate().map(cell).collect()
}

/// The lines of a table for stdout, the header first.
pub fn lines(rows: &[Vec<Cell>], indent: usize) -> String {
    within(rows, indent, stdio::stdout_width())
}

/// A text for stdout whose lines are folded at a terminal. A line with colours stays as it is.
pub fn folded(text: &str, width: Option<usize>) -> String {
    let line = |line: &str| match line.contains('\u{1b}') {
        true => format!("{line}\n"),
        false => {
            let words = line.trim_start_matches(' ');
            within(&[vec![self::text(words)]], line.len() - words.len(), width)
        }
    };
    if width.is_some() { text.lines().map(line).collect() } else { text.to_owned() }
}

/// The lines of a table, in a width, the header first. Without a width each row is one line.
pub fn within(rows: &[Vec<Cell>], indent: usize, width: Option<usize>) -> String {
    rows_within(rows, indent, width).concat()
}

/// The lines of each row of a table, in a width.
pub fn rows_within(rows: &[Vec<Cell>], indent: usize, width: Option<usize>) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let column = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let natural: Vec<usize> = (0..columns)
        .map(|at| column(at).map(|cell| measure_text_width(&cell.text)).max().unwrap_or(0))
        .collect();
    let is_text: Vec<bool> = (0..columns).map(|at| column(at).skip(1).any(|cell| cell.is_text)).collect();
    let bands = bands(&natural, &is_text, indent, width);
    let lines_of = |row: &Vec<Cell>| {
        let mut text = String::new();
        for (columns, indent, widths) in &bands {
            let folded: Vec<Vec<&str>> = row[columns.clone()]
                .iter()
                .zip(widths)
                .map(|(cell, columns)| {
                    width.map_or_else(|| vec![&*cell.text], |_| fold(&cell.text, *columns))
                })
                .collect();
            for line in 0..folded.iter().map(Vec::len).max().unwrap_or(0) {
                let parts =
                    row[columns.clone()].iter().zip(widths).zip(&folded).map(|((cell, width), parts)| {
                        let alignment = if cell.is_text { Alignment::Left } else { Alignment::Right };
                        pad_str(parts.get(line).copied().unwrap_or_default(), *width, alignment, None)
                    });
                let line = parts.collect::<Vec<_>>().join(&" ".repeat(GAP));
                let line = format!("{:indent$}{line}", "");
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    };
    rows.iter().map(lines_of).collect()
}

/// Columns that stand side by side, what their lines begin with, and the widths.
type Band = (Range<usize>, usize, Vec<usize>);

/// As few bands as there can be.
fn bands(natural: &[usize], is_text: &[bool], indent: usize, width: Option<usize>) -> Vec<Band> {
    let Some(width) = width else {
        let widths = natural.iter().map(|natural| (*natural).min(MAX_PADDING)).collect();
        return vec![(0..natural.len(), indent, widths)];
    };
    let least = |column: usize| if is_text[column] { natural[column].min(MIN_TEXT) } else { natural[column] };
    let needed = |columns: Range<usize>| columns.map(|column| least(column) + GAP).sum::<usize>();
    let mut bands: Vec<Band> = Vec::new();
    let mut from = 0;
    while from < natural.len() {
        let indent = if bands.is_empty() { indent } else { indent + FURTHER };
        let room = width.saturating_sub(indent).max(1);
        let fits = |to: &usize| needed(from..*to) <= room + GAP;
        let to = (from + 1..=natural.len()).take_while(fits).last().unwrap_or(from + 1);
        let mut widths: Vec<usize> = natural[from..to].iter().map(|natural| (*natural).min(room)).collect();
        let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * (widths.len() - 1);
        // The widest text gives way first.
        while total(&widths) > room {
            let texts = (0..widths.len()).filter(|place| is_text[from + place]);
            let Some(widest) = texts.max_by_key(|place| widths[*place]) else { break };
            widths[widest] -= 1;
        }
        bands.push((from..to, indent, widths));
        from = to;
    }
    bands
}

/// The lines of a text in a width, broken at blanks, or within a word that has no room in a line.
fn fold(text: &str, width: usize) -> Vec<&str> {
    // It may have colours then.
    if measure_text_width(text) <= width {
        return vec![text];
    }
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        let mut used = 0;
        let past = clusters(rest).find(|(at, columns)| {
            used += columns;
            used > width && *at > 0
        });
        let Some((end, _)) = past else {
            lines.push(rest);
            return lines;
        };
        let blank = if rest[end..].starts_with(' ') { Some(end) } else { rest[..end].rfind(' ') };
        let end = blank.filter(|blank| !rest[..*blank].trim().is_empty()).unwrap_or(end);
        lines.push(rest[..end].trim_end());
        rest = rest[end..].trim_start();
    }
}

/// The places of letters, each with its columns. What a terminal shows as one letter stays together, such as
/// emoji with joiners between them: it has fewer columns than its parts.
fn clusters(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let begin = rest;
        let mut chars = text[begin..].chars();
        rest += chars.next()?.len_utf8();
        let mut columns = measure_text_width(&text[begin..rest]);
        for char in chars {
            let end = rest + char.len_utf8();
            let (alone, joined) =
                (measure_text_width(&text[rest..end]), measure_text_width(&text[begin..end]));
            if alone > 0 && joined >= columns + alone || end - begin > MAX_CLUSTER {
                break;
            }
            (rest, columns) = (end, joined);
        }
        Some((begin, columns))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_that_are_joined_have_the_columns_of_one() {
        let family = "\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        let text = format!("{family}a\u{308}\u{2764}\u{fe0f}日{family}");
        let places: Vec<_> = clusters(&text).collect();
        assert_eq!(places, [(0, 2), (18, 1), (21, 2), (27, 2), (30, 2)]);
        let rows = [[""; 1], [&text], [family]].map(|row| cells(row, &[0]));
        let lines: Vec<_> = [9, 4].map(|width| within(&rows, 0, Some(width))).into();
        assert_eq!(lines[0], format!("\n{text}\n{family}\n"));
        let folded = format!("\n{family}a\u{308}\n\u{2764}\u{fe0f}日\n{family}\n{family}\n");
        assert_eq!(lines[1], folded);
    }

    fn table(width: Option<usize>) -> Vec<String> {
        let rows = [
            ["category", "name", "count", "total"],
            ["net", "a name that goes on and on-and-on-and-on-and-on", "1234567", "12.5 ms"],
            ["größer-größer-größer", "日本", "1", "2 s"],
        ];
        let rows = rows.map(|row| cells(row, &[0, 1]));
        within(&rows, 2, width).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_row_is_one_line_where_there_is_no_terminal_or_room() {
        let whole = [
            "  category              name                                               count    total",
            "  net                   a name that goes on and on-and-on-and-on-and-on  1234567  12.5 ms",
            "  größer-größer-größer  日本                                                   1      2 s",
        ];
        assert_eq!(table(None), whole);
        assert_eq!(table(Some(89)), whole);
    }

    #[test]
    fn texts_are_folded_inside_their_columns() {
        assert_eq!(
            table(Some(60)),
            [
                "  category             name                   count    total",
                "  net                  a name that goes on  1234567  12.5 ms",
                "                       and",
                "                       on-and-on-and-on-an",
                "                       d-on",
                "  größer-größer-größe  日本                       1      2 s",
                "  r",
            ]
        );
    }

    #[test]
    fn columns_without_room_follow_on_further_lines() {
        assert_eq!(
            table(Some(40)),
            [
                "  category            name",
                "        count    total",
                "  net                 a name that goes",
                "                      on and",
                "                      on-and-on-and-on-a",
                "                      nd-on",
                "      1234567  12.5 ms",
                "  größer-größer-größ  日本",
                "  er",
                "            1      2 s",
            ]
        );
    }

    #[test]
    fn no_line_is_wider_and_no_text_is_lost() {
        let letters = |lines: &[String]| {
            let mut all: Vec<char> = lines.concat().chars().filter(|char| !char.is_whitespace()).collect();
            all.sort_unstable();
            all
        };
        for width in 8..120 {
            let lines = table(Some(width));
            assert!(lines.iter().all(|line| measure_text_width(line) <= width), "{width}: {lines:#?}");
            assert_eq!(letters(&lines), letters(&table(None)), "{width}");
        }
    }
}

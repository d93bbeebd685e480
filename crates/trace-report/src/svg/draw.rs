//! The picture's text.

use super::arrows::{Arrow, Arrows};
use super::axis;
use super::collector::{Collector, Loss};
use super::layout::{GUTTER, HEAD, Lane, LaneKind, Layout, MARGIN, POINTS, PROCESS, ROW, Shown, WIDTH};
use super::merge::Bar;
use super::rows::{Placed, place};
use super::text::{cut, escaped, px, title};
use crate::entry::OPEN;
use std::io::{self, Write};
use trace_analysis::counted::Counted;
use trace_format::shown::Lasting;

/// Colours of slices: the same name has the same one.
const COLOURS: u32 = 12;
/// The narrowest bar.
const MIN_BAR: f64 = 0.8;
/// Bars that are narrower have no edge.
const THIN: f64 = 3.0;
const NOTE: f64 = 15.0;
/// About half as wide as a text of the time axis.
const EDGE: f64 = 24.0;

/// Colours for both kinds of pages, as variables. `c0` to `c11` are those of slices.
const STYLE: &str = include_str!("style.css");

/// Something that the picture says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub count: u64,
    pub text: &'static str,
}

/// Everything that is drawn.
pub struct Picture {
    name: String,
    /// The first moment of the trace.
    first: u64,
    collector: Collector,
    shown: Shown,
    placed: Placed,
    layout: Layout,
    arrows: Arrows,
    notes: Vec<Note>,
}

impl Picture {
    /// Places everything that was collected.
    pub fn of(mut collector: Collector, name: &str, first: u64) -> io::Result<Self> {
        let shown = Shown::of(&collector);
        let placed = place(&mut collector, &shown.tracks)?;
        let layout = Layout::of(&collector, &shown, &placed.rows);
        let arrows = Arrows::of(&collector.flows, collector.window, &placed, &layout);
        let merged = placed.bars.iter().filter(|bar| bar.count > 1).map(|bar| bar.count).sum();
        let lost = collector.losses.iter().map(|loss| loss.count).sum();
        let notes = [
            (lost, "missing records, hatched where the time is known"),
            (merged, "slices are too short to be seen one by one: neighbours are drawn together"),
            (placed.deep, "slices deeper than 24 rows, not shown"),
            (shown.hidden_threads, "threads with less time, not shown"),
            (shown.hidden_operations, "further kinds of operations, not shown"),
            (shown.hidden_series, "further counters, not shown"),
            (arrows.outside, "arrows out of the picture, not shown"),
            (arrows.beyond, "further arrows, not shown"),
            (collector.open, "slices without an end"),
        ];
        let notes = notes.into_iter().filter(|(count, _)| *count > 0);
        let notes = notes.map(|(count, text)| Note { count, text }).collect();
        Ok(Self { name: name.to_owned(), first, collector, shown, placed, layout, arrows, notes })
    }

    /// What it says about itself.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// What is in the window and not in the picture, by its kind.
    pub fn skipped(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("events of tracks that are not shown", self.shown.hidden_events),
            ("slices deeper than 24 rows", self.placed.deep),
        ]
    }

    /// How many events are in it.
    pub fn events(&self) -> u64 {
        let Collector { slice_count, point_count, value_count, .. } = self.collector;
        let left_out = self.shown.hidden_events + self.placed.deep;
        (slice_count + point_count + value_count).saturating_sub(left_out)
    }

    fn x(&self, at: u64) -> f64 {
        MARGIN + GUTTER + self.collector.pixel(at)
    }

    fn text(&self, what: u32) -> (&str, &str) {
        let (category, name) = self.collector.whats.list().get(what as usize).copied().unwrap_or_default();
        (self.collector.texts.text(category), self.collector.texts.text(name))
    }

    /// A time from the beginning of the trace, as text.
    fn time(&self, at: u64) -> String {
        lasting(at.saturating_sub(self.first))
    }

    /// Writes the picture.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (from, to) = self.collector.window;
        let width = 2.0 * MARGIN + GUTTER + WIDTH;
        let notes = self.notes.len() as f64 * NOTE;
        let bottom = self.layout.bottom;
        let height = bottom + notes + MARGIN;
        let (w, h) = (px(width), px(height));
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\">"
        )?;
        let window = format!("{} to {}", self.time(from), self.time(to));
        writeln!(out, "<title>{}, {window}</title>", title(&self.name))?;
        writeln!(out, "<style>{STYLE}</style>")?;
        writeln!(
            out,
            "<defs><pattern id=\"lost\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><path class=\"lost\" d=\"M0 0V6\"/></pattern><marker id=\"head\" \
             viewBox=\"0 0 6 6\" refX=\"5.5\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path \
             class=\"head\" d=\"M0 0L6 3L0 6z\"/></marker></defs>"
        )?;
        writeln!(out, "<rect class=\"page\" width=\"{w}\" height=\"{h}\"/>")?;
        let name = cut(&self.name, WIDTH / 2.0).unwrap_or_default();
        writeln!(out, "<text class=\"name\" x=\"{}\" y=\"17\">{name}</text>", px(MARGIN))?;
        let length = lasting(to - from);
        writeln!(
            out,
            "<text class=\"dim end\" x=\"{}\" y=\"17\">{window} ({length})</text>",
            px(width - MARGIN)
        )?;
        self.axis(out)?;
        for lane in &self.layout.lanes {
            self.lane(lane, out)?;
        }
        for bar in &self.placed.bars {
            self.bar(bar, out)?;
        }
        for loss in &self.collector.losses {
            self.loss(loss, out)?;
        }
        for arrow in &self.arrows.list {
            self.arrow(arrow, out)?;
        }
        for (place, note) in self.notes.iter().enumerate() {
            let y = bottom + (place as f64 + 1.0) * NOTE - 4.0;
            writeln!(
                out,
                "<text class=\"dim\" x=\"{}\" y=\"{}\">{}</text>",
                px(MARGIN),
                px(y),
                Counted(note.count, note.text)
            )?;
        }
        writeln!(out, "</svg>")
    }

    /// Lines and texts of the time axis.
    fn axis(&self, out: &mut dyn Write) -> io::Result<()> {
        let (from, to) = self.collector.window;
        for (at, label) in axis::marks(from - self.first, to - self.first) {
            let x = self.x(at + self.first);
            // The last one may be at the edge.
            let is_last = x > MARGIN + GUTTER + WIDTH - EDGE;
            writeln!(
                out,
                "<path class=\"grid\" d=\"M{} {}V{}\"/><text class=\"dim {}\" x=\"{}\" y=\"{}\">{label}</text>",
                px(x),
                px(HEAD + 16.0),
                px(self.layout.bottom),
                if is_last { "end" } else { "mid" },
                px(if is_last { MARGIN + GUTTER + WIDTH } else { x }),
                px(HEAD + 12.0)
            )?;
        }
        Ok(())
    }

    fn lane(&self, lane: &Lane, out: &mut dyn Write) -> io::Result<()> {
        let Lane { kind, y, height, title: label } = lane;
        let (left, right) = (px(MARGIN), px(MARGIN + GUTTER + WIDTH));
        let full = title(label);
        if let LaneKind::Process(_) = kind {
            let label = cut(label, GUTTER * 3.0).unwrap_or_default();
            return writeln!(
                out,
                "<path class=\"line\" d=\"M{left} {}H{right}\"/><text class=\"name\" x=\"{left}\" \
                 y=\"{}\">{label}<title>{full}</title></text>",
                px(*y),
                px(y + PROCESS - 6.0)
            );
        }
        let label = cut(label, GUTTER - 16.0).unwrap_or_default();
        let middle = match kind {
            LaneKind::Thread(thread) => self.layout.threads.get(thread).copied().unwrap_or(*y),
            _ => y + (height / 2.0).min(ROW / 2.0),
        };
        writeln!(
            out,
            "<text x=\"{}\" y=\"{}\">{label}<title>{full}</title></text>",
            px(MARGIN + 8.0),
            px(middle + 4.0)
        )?;
        match kind {
            LaneKind::Thread(thread) => self.points(*thread, *y, out),
            LaneKind::Counter(series) => match self.collector.series.get(series) {
                Some(buckets) => self.counter(buckets, *y, *height, out),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Instants and log entries of a thread, as diamonds.
    fn points(&self, thread: u32, y: f64, out: &mut dyn Write) -> io::Result<()> {
        for (count, at, what) in
            self.collector.points.get(&thread).into_iter().flat_map(|points| points.values())
        {
            let (_, name) = self.text(*what);
            let (x, middle) = (self.x(*at), y + POINTS / 2.0);
            let others = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            writeln!(
                out,
                "<path class=\"point\" d=\"M{} {}l4 4l-4 4l-4-4z\"><title>{}{others}\nat {}</title></path>",
                px(x),
                px(middle - 4.0),
                title(name),
                self.time(*at)
            )?;
        }
        Ok(())
    }

    fn counter(
        &self,
        buckets: &super::counters::Buckets,
        y: f64,
        height: f64,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Some((least, most)) = buckets.range() else { return Ok(()) };
        // From 0, unless all values are far from it.
        let (low, high) = (least.min(0.0), most.max(0.0));
        let place = |value: f64| {
            let part = (value - low) / (high - low);
            y + height - if part.is_finite() { part * (height - 2.0) } else { 0.0 }
        };
        let left = MARGIN + GUTTER;
        let mut path = String::new();
        let mut end = 0.0;
        for (number, (at, value)) in buckets.line(WIDTH).into_iter().enumerate() {
            if number == 0 {
                path += &format!("M{} {}", px(left + at), px(place(0.0)));
            }
            path += &format!("L{} {}", px(left + at), px(place(value)));
            end = at;
        }
        path += &format!("L{} {}z", px(left + end), px(place(0.0)));
        writeln!(
            out,
            "<path class=\"counter\" d=\"{path}\"><title>{} to {}, at the end {}</title></path>",
            number(least),
            number(most),
            number(buckets.last().unwrap_or_default())
        )
    }

    fn bar(&self, bar: &Bar, out: &mut dyn Write) -> io::Result<()> {
        let Some(y) = self.layout.tracks.get(&bar.track) else { return Ok(()) };
        let y = y + f64::from(bar.row) * ROW;
        let (from, to) = (self.x(bar.from), self.x(bar.to));
        let width = (to - from).max(MIN_BAR);
        let (category, name) = self.text(bar.what);
        let colour = colour_of(name);
        let length = match bar.end {
            OPEN => "has not ended".to_owned(),
            end => lasting(end - bar.begin),
        };
        let mut more =
            if bar.count > 1 { format!("{} slices, the longest:\n", bar.count) } else { String::new() };
        more += &format!("{}\n{length}\nat {}", title(name), self.time(bar.begin));
        if !category.is_empty() {
            more += &format!("\n{}", title(category));
        }
        let class = match bar {
            Bar { count: 2.., .. } => " together",
            Bar { end: OPEN, .. } => " open",
            // An edge would hide it.
            _ if width < THIN => " thin",
            _ => "",
        };
        write!(
            out,
            "<g><title>{more}</title><rect class=\"c{colour}{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            px(from),
            px(y),
            px(width),
            px(ROW - 1.0)
        )?;
        if let Some(label) = cut(name, width - 6.0).filter(|_| bar.count == 1) {
            write!(out, "<text x=\"{}\" y=\"{}\">{label}</text>", px(from + 3.0), px(y + ROW - 5.5))?;
        }
        writeln!(out, "</g>")
    }

    /// Hatches the tracks of the processes whose records are missing.
    fn loss(&self, loss: &Loss, out: &mut dyn Write) -> io::Result<()> {
        let Some((from, to)) = loss.times else { return Ok(()) };
        let pids = self.collector.provider_pids.iter().filter(|(provider, _)| *provider == loss.provider);
        for (top, bottom) in pids.filter_map(|(_, pid)| self.layout.processes.get(pid)) {
            let (left, right) = (self.x(from), self.x(to));
            writeln!(
                out,
                "<rect fill=\"url(#lost)\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{} lost: \
                 {}</title></rect>",
                px(left),
                px(*top),
                px((right - left).max(2.0)),
                px(bottom - top),
                Counted(loss.count, "records"),
                title(&loss.reason)
            )?;
        }
        Ok(())
    }

    fn arrow(&self, arrow: &Arrow, out: &mut dyn Write) -> io::Result<()> {
        let (x1, x2) = (self.x(arrow.from.0), self.x(arrow.to.0));
        let (y1, y2) = (arrow.from.1, arrow.to.1);
        let bend = ((x2 - x1) / 2.0).clamp(12.0, 60.0);
        let (_, name) = self.text(arrow.what);
        let length = lasting(arrow.to.0.saturating_sub(arrow.from.0));
        writeln!(
            out,
            "<path class=\"flow\" marker-end=\"url(#head)\" d=\"M{} {}C{} {} {} {} {} {}\"><title>{} \
             {:#x}\n{length}</title></path>",
            px(x1),
            px(y1),
            px(x1 + bend),
            px(y1),
            px(x2 - bend),
            px(y2),
            px(x2),
            px(y2),
            title(name),
            arrow.id
        )
    }
}

/// A value of a counter, short.
fn number(value: f64) -> String {
    escaped(&format!("{value}"))
}

/// The number of a name's colour.
fn colour_of(name: &str) -> u32 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash ^ hash >> 15) % COLOURS
}

/// A length of time in nanoseconds.
fn lasting(nanos: u64) -> String {
    Lasting(nanos as f64).to_string()
}

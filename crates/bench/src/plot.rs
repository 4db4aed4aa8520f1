//! How a [`Figure`] is drawn.
//!
//! The legend is the whole figure's, above all panels: nothing lies on what was measured. A line is broken where there is no
//! value, and a value between two such places is a dot. Bars and points have their least and greatest run on them.

use crate::axis::Axis;
use crate::chart::{Figure, Origin, Panel, Point, Series, Strip};
use crate::palette::{self, FRAME, GRID, INK, Look, Marker};
use crate::svg::{Anchor, Canvas, Fill, Rect, Stroke, text_width};

/// Width and height of a panel with all that belongs to it.
const PANEL: (f64, f64) = (590.0, 330.0);
/// Around everything.
const MARGIN: f64 = 12.0;
/// What is left of a panel's diagram, above, right and below.
const AROUND: (f64, f64, f64, f64) = (92.0, 32.0, 14.0, 62.0);
/// The height of a strip, and the gap below it.
const STRIP: (f64, f64) = (21.0, 5.0);
/// Letters.
const TITLE: f64 = 18.0;
const HEADING: f64 = 14.0;
const TEXT: f64 = 12.0;
/// A row of the legend, and the swatch in it.
const ROW: f64 = 22.0;
const SWATCH: f64 = 26.0;
/// The part of a category's room that its bars take.
const BARS: f64 = 0.82;
/// Lines of more points than this have no marks at them.
const MARKED: usize = 32;

/// Where everything of a figure stands.
struct Layout {
    area: Rect,
    legend: Rect,
    panels: Vec<Place>,
}

/// Where a panel stands.
#[derive(Clone, Copy)]
struct Place {
    all: Rect,
    /// The diagram itself.
    plot: Rect,
    /// Above it.
    strip: Rect,
}

/// An entry of the legend.
struct Entry<'a> {
    series: &'a Series,
    look: Look,
    bars: bool,
    width: f64,
}

impl Entry<'_> {
    /// What it says.
    fn text(&self) -> String {
        match self.series.origin {
            Origin::Calculated => format!("{} (calculated)", self.series.label),
            Origin::Published if self.series.label.is_empty() => self.series.source.to_owned(),
            Origin::Published => format!("{}: {}", self.series.label, self.series.source),
            Origin::Measured => self.series.label.clone(),
        }
    }
}

impl Figure {
    /// Names in the order in which they come first: a name's place decides what it looks like.
    fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if series.is_visible()
                && series.origin != Origin::Published
                && !names.contains(&series.label.as_str())
            {
                names.push(series.label.as_str());
            }
        }
        names
    }

    /// What is explained.
    fn entries(&self) -> Vec<Entry<'_>> {
        let names = self.names();
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for panel in &self.panels {
            for series in panel.series.iter().filter(|series| series.is_visible()) {
                let bars = !panel.categories.is_empty();
                let same = |entry: &Entry<'_>| {
                    (&entry.series.label, entry.series.origin, entry.bars)
                        == (&series.label, series.origin, bars)
                };
                if entries.iter().any(same) {
                    continue;
                }
                let mut entry = Entry { series, look: look_of(&names, series), bars, width: 0.0 };
                entry.width = SWATCH + 6.0 + text_width(&entry.text(), TEXT) + 18.0;
                entries.push(entry);
            }
        }
        entries
    }

    fn layout(&self, entries: &[Entry<'_>]) -> Layout {
        let columns = self.panels.len().clamp(1, 2);
        let rows = self.panels.len().div_ceil(columns).max(1);
        let width = PANEL.0 * columns as f64 + 2.0 * MARGIN;
        let top = MARGIN + TITLE + 12.0;
        let lines = lines_of(entries, width - 2.0 * MARGIN).len();
        let legend = Rect { left: MARGIN, top, width: width - 2.0 * MARGIN, height: ROW * lines as f64 };
        let begin = legend.bottom() + 6.0;
        let place = |number: usize| {
            let (column, row) = (number % columns, number / columns);
            let (left, top) = (MARGIN + column as f64 * PANEL.0, begin + row as f64 * PANEL.1);
            let all = Rect { left, top, width: PANEL.0, height: PANEL.1 };
            let strip = Rect {
                left: left + AROUND.0,
                top: top + AROUND.1,
                width: PANEL.0 - AROUND.0 - AROUND.2,
                height: STRIP.0,
            };
            let above = if self.panels.get(number).is_some_and(|panel| panel.strip.is_some()) {
                STRIP.0 + STRIP.1
            } else {
                0.0
            };
            let plot =
                Rect { top: strip.top + above, height: PANEL.1 - AROUND.1 - AROUND.3 - above, ..strip };
            Place { all, plot, strip }
        };
        let area = Rect { width, height: begin + rows as f64 * PANEL.1 + MARGIN, ..Rect::default() };
        Layout { area, legend, panels: (0..self.panels.len()).map(place).collect() }
    }
}

/// Entries in rows that are no wider than this.
fn lines_of<'a, 'b>(entries: &'a [Entry<'b>], width: f64) -> Vec<Vec<&'a Entry<'b>>> {
    let mut lines: Vec<Vec<&Entry<'_>>> = Vec::new();
    let mut taken = width;
    for entry in entries {
        if taken + entry.width > width {
            lines.push(Vec::new());
            taken = 0.0;
        }
        taken += entry.width;
        lines.last_mut().into_iter().for_each(|line| line.push(entry));
    }
    lines
}

fn look_of(names: &[&str], series: &Series) -> Look {
    let known = names.iter().position(|name| *name == series.label).map(palette::look);
    // Of something that was not measured here.
    known.unwrap_or(Look { colour: FRAME, hatch: 0, marker: Marker::Square })
}

/// Draws all of it.
pub fn draw(figure: &Figure) -> Canvas {
    let entries = figure.entries();
    let layout = figure.layout(&entries);
    let mut canvas = Canvas::new(layout.area.width, layout.area.height);
    canvas.text((MARGIN, MARGIN + 0.8 * TITLE), Anchor::Start, TITLE, &figure.title);
    draw_legend(&mut canvas, &entries, layout.legend);
    let names = figure.names();
    for (panel, place) in figure.panels.iter().zip(&layout.panels) {
        draw_panel(&mut canvas, panel, place, &names);
    }
    canvas
}

fn draw_legend(canvas: &mut Canvas, entries: &[Entry<'_>], area: Rect) {
    for (number, line) in lines_of(entries, area.width).into_iter().enumerate() {
        let middle = area.top + ROW * (number as f64 + 0.5);
        let mut left = area.left;
        for entry in line {
            let swatch = Rect { left, top: middle - 6.0, width: SWATCH, height: 12.0 };
            if entry.bars {
                draw_bar(canvas, swatch, entry.look, entry.series.origin);
            } else {
                let stroke = stroke_of(entry.look, entry.series.origin, 2.0);
                canvas.line(&[(left, middle), (swatch.right(), middle)], stroke);
                if entry.series.points.len() <= MARKED {
                    mark(canvas, (left + SWATCH / 2.0, middle), entry.look, entry.series.origin);
                }
            }
            canvas.text((swatch.right() + 6.0, middle + 0.35 * TEXT), Anchor::Start, TEXT, &entry.text());
            left += entry.width;
        }
    }
}

fn stroke_of(look: Look, origin: Origin, width: f64) -> Stroke {
    let dash = match origin {
        Origin::Measured => "",
        Origin::Calculated => "6 4",
        Origin::Published => "2 3",
    };
    Stroke { colour: look.colour, width, dash }
}

fn draw_bar(canvas: &mut Canvas, at: Rect, look: Look, origin: Origin) {
    match origin {
        Origin::Measured => {
            canvas.rect(at, Fill { colour: look.colour, opacity: 1.0, hatch: look.hatch }, None);
        }
        Origin::Calculated => canvas.rect(
            at,
            Fill { colour: look.colour, opacity: 0.3, hatch: 0 },
            Some(stroke_of(look, origin, 1.0)),
        ),
        Origin::Published => canvas.rect(
            at,
            Fill { colour: look.colour, opacity: 0.25, hatch: 0 },
            Some(stroke_of(look, origin, 1.0)),
        ),
    }
}

fn mark(canvas: &mut Canvas, (x, y): (f64, f64), look: Look, origin: Origin) {
    if origin == Origin::Published {
        // A diamond, and hollow.
        let corners = [(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)];
        canvas.polygon(&corners, Fill::plain("#ffffff"), Some(Stroke::solid(look.colour, 1.8)));
        return;
    }
    let fill = Fill::plain(look.colour);
    match look.marker {
        Marker::Circle => canvas.circle((x, y), 3.6, fill, None),
        Marker::Square => {
            canvas.rect(Rect { left: x - 3.3, top: y - 3.3, width: 6.6, height: 6.6 }, fill, None);
        }
        Marker::Triangle => {
            canvas.polygon(&[(x, y - 4.4), (x + 4.2, y + 3.4), (x - 4.2, y + 3.4)], fill, None)
        }
        Marker::Wedge => canvas.polygon(&[(x, y + 4.4), (x + 4.2, y - 3.4), (x - 4.2, y - 3.4)], fill, None),
    }
}

/// The least and the greatest; `None` without any.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |range, value| {
        let (least, most) = range.unwrap_or((value, value));
        Some((value.min(least), value.max(most)))
    })
}

/// A panel's axes, and where values are on the canvas.
struct Scale {
    across: Axis,
    up: Axis,
    plot: Rect,
}

impl Scale {
    fn of(panel: &Panel, plot: Rect) -> Self {
        let points = || panel.series.iter().flat_map(|series| &series.points);
        let across = if panel.categories.is_empty() {
            let spans = panel.strip.iter().flat_map(|strip| &strip.spans).flat_map(|span| [span.0, span.1]);
            let (left, right) = range(points().map(|point| point.x).chain(spans)).unwrap_or((0.0, 1.0));
            // Whole things stand clear of the axis.
            let clear = if panel.whole { 0.25 } else { 0.0 };
            Axis::between(left - clear, right + clear, panel.whole)
        } else {
            let last = panel.categories.len() as f64 - 0.5;
            Axis::unwritten(-0.5, last)
        };
        let values =
            points().flat_map(|point| [point.y, point.spread.map(|s| s.0), point.spread.map(|s| s.1)]);
        let (least, most) = range(values.flatten().filter(|y| *y > 0.0)).unwrap_or((1.0, 1.0));
        let up = if panel.logarithmic { Axis::powers(least, most) } else { Axis::from_zero(most) };
        Self { across, up, plot }
    }

    fn x(&self, value: f64) -> f64 {
        self.plot.left + self.plot.width * self.across.place(value).unwrap_or_default()
    }

    /// `None` where the axis has no such value.
    fn y(&self, value: f64) -> Option<f64> {
        Some(self.plot.bottom() - self.plot.height * self.up.place(value)?)
    }
}

fn draw_panel(canvas: &mut Canvas, panel: &Panel, place: &Place, names: &[&str]) {
    let Place { all, plot, strip } = *place;
    canvas.text((plot.left, all.top + 0.5 * AROUND.1 + 0.3 * HEADING), Anchor::Start, HEADING, &panel.title);
    let scale = Scale::of(panel, plot);
    draw_axes(canvas, panel, &scale, all);
    if let Some(found) = &panel.strip {
        draw_strip(canvas, found, strip, &scale);
    }
    let seen: Vec<&Series> = panel.series.iter().filter(|series| series.is_visible()).collect();
    if panel.categories.is_empty() {
        // The first series on top, the last one the widest: where two are the same, both can be seen.
        for (number, series) in seen.iter().enumerate().rev() {
            draw_line(canvas, series, look_of(names, series), &scale, 1.6 + 0.8 * number as f64);
        }
    } else {
        let own: Vec<&&Series> = seen.iter().filter(|series| series.origin != Origin::Published).collect();
        for (number, series) in own.iter().enumerate() {
            draw_bars(canvas, series, look_of(names, series), &scale, (number, own.len()));
        }
        for series in seen.iter().filter(|series| series.origin == Origin::Published) {
            draw_published(canvas, series, look_of(names, series), &scale);
        }
    }
    canvas.line(
        &[(plot.left, plot.top), (plot.left, plot.bottom()), (plot.right(), plot.bottom())],
        Stroke::solid(INK, 1.0),
    );
}

fn draw_axes(canvas: &mut Canvas, panel: &Panel, scale: &Scale, all: Rect) {
    let plot = scale.plot;
    for (value, text) in &scale.up.ticks {
        let Some(y) = scale.y(*value) else { continue };
        canvas.line(&[(plot.left, y), (plot.right(), y)], Stroke::solid(GRID, 1.0));
        canvas.text((plot.left - 6.0, y + 0.35 * TEXT), Anchor::End, TEXT, text);
    }
    for (value, text) in &scale.across.ticks {
        let x = scale.x(*value);
        canvas.line(&[(x, plot.bottom()), (x, plot.bottom() + 4.0)], Stroke::solid(INK, 1.0));
        canvas.text((x, plot.bottom() + 17.0), Anchor::Middle, TEXT, text);
    }
    // Names that need more room than they have stand in two rows.
    let room = plot.width / panel.categories.len().max(1) as f64;
    let crowded = panel.categories.iter().any(|name| text_width(name, TEXT) + 6.0 > room);
    for (number, name) in panel.categories.iter().enumerate() {
        let lower = if crowded && number % 2 == 1 { TEXT + 2.0 } else { 0.0 };
        canvas.text((scale.x(number as f64), plot.bottom() + 17.0 + lower), Anchor::Middle, TEXT, name);
    }
    let middle =
        (plot.left + plot.width / 2.0, plot.bottom() + 17.0 + TEXT + if crowded { TEXT + 8.0 } else { 8.0 });
    canvas.text(middle, Anchor::Middle, TEXT, &panel.axes.0);
    canvas.text_upwards((all.left + 14.0, plot.top + plot.height / 2.0), TEXT, &panel.axes.1);
}

fn draw_strip(canvas: &mut Canvas, strip: &Strip, at: Rect, scale: &Scale) {
    for (number, (from, to, text)) in strip.spans.iter().enumerate() {
        let (left, right) = (scale.x(*from), scale.x(*to));
        let opacity = if number % 2 == 0 { 0.15 } else { 0.4 };
        let span = Rect { left, top: at.top, width: right - left, height: at.height };
        canvas.rect(span, Fill { colour: FRAME, opacity, hatch: 0 }, None);
        // Above the marks.
        if text_width(text, TEXT) + 4.0 < right - left {
            canvas.text((f64::midpoint(left, right), at.top + TEXT + 1.0), Anchor::Middle, TEXT, text);
        }
    }
    for tick in &strip.ticks {
        let x = scale.x(*tick);
        canvas.line(&[(x, at.bottom() - 5.0), (x, at.bottom() + 3.0)], Stroke::solid(INK, 1.2));
    }
    canvas.rect(at, Fill::NONE, Some(Stroke::solid(FRAME, 1.0)));
    canvas.text((at.left - 6.0, at.top + 0.5 * at.height + 0.35 * TEXT), Anchor::End, TEXT, &strip.label);
}

/// Stretches of points that have values, as places.
fn stretches(series: &Series, scale: &Scale) -> Vec<Vec<(f64, f64)>> {
    let mut stretches = vec![Vec::new()];
    for point in &series.points {
        match point.y.and_then(|y| scale.y(y)) {
            Some(y) => stretches.last_mut().into_iter().for_each(|last| last.push((scale.x(point.x), y))),
            None => stretches.push(Vec::new()),
        }
    }
    stretches.retain(|stretch| !stretch.is_empty());
    stretches
}

fn draw_line(canvas: &mut Canvas, series: &Series, look: Look, scale: &Scale, width: f64) {
    let width = if series.points.len() > MARKED { width } else { 1.8 };
    for stretch in stretches(series, scale) {
        match stretch.as_slice() {
            [(x, y)] => canvas.circle((*x, *y), 0.5 + width / 2.0, Fill::plain(look.colour), None),
            points => canvas.line(points, stroke_of(look, series.origin, width)),
        }
    }
    if series.points.len() > MARKED {
        return;
    }
    for point in &series.points {
        let Some(y) = point.y.and_then(|y| scale.y(y)) else { continue };
        draw_spread(canvas, scale.x(point.x), point, scale);
        mark(canvas, (scale.x(point.x), y), look, series.origin);
    }
}

/// The bars of one of several series.
fn draw_bars(canvas: &mut Canvas, series: &Series, look: Look, scale: &Scale, (number, of): (usize, usize)) {
    let room = scale.x(1.0) - scale.x(0.0);
    let width = room * BARS / of.max(1) as f64;
    for point in &series.points {
        let Some(value) = point.y else { continue };
        let left = scale.x(point.x) - room * BARS / 2.0 + number as f64 * width;
        let middle = left + width / 2.0;
        match scale.y(value).filter(|_| value > 0.0) {
            Some(y) => {
                let bar =
                    Rect { left: left + 0.5, top: y, width: width - 1.0, height: scale.plot.bottom() - y };
                draw_bar(canvas, bar, look, series.origin);
                draw_spread(canvas, middle, point, scale);
            }
            // There is a value, but nothing to see of it.
            None => {
                canvas.text((middle, scale.plot.bottom() - 3.0), Anchor::Middle, TEXT.min(width * 1.2), "0")
            }
        }
    }
}

/// What others published, over all bars of a category: a field from the least to the greatest, or a line.
fn draw_published(canvas: &mut Canvas, series: &Series, look: Look, scale: &Scale) {
    let room = scale.x(1.0) - scale.x(0.0);
    for point in &series.points {
        let Some(value) = point.y else { continue };
        let (least, most) = point.spread.unwrap_or((value, value));
        let (Some(bottom), Some(top)) = (scale.y(least), scale.y(most)) else { continue };
        let (left, width) = (scale.x(point.x) - room * 0.48, room * 0.96);
        // A line is a thin field.
        let (top, height) = (top.min(bottom - 4.0), (bottom - top).max(4.0));
        draw_bar(canvas, Rect { left, top, width, height }, look, series.origin);
    }
}

fn draw_spread(canvas: &mut Canvas, x: f64, point: &Point, scale: &Scale) {
    let Some((least, most)) = point.spread else { return };
    let bottom = scale.y(least).unwrap_or(scale.plot.bottom());
    let Some(top) = scale.y(most) else { return };
    // On dark bars too.
    for stroke in [Stroke::solid("#ffffff", 3.2), Stroke::solid(INK, 1.2)] {
        canvas.line(&[(x, bottom), (x, top)], stroke);
        [bottom, top].into_iter().for_each(|y| canvas.line(&[(x - 3.0, y), (x + 3.0, y)], stroke));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn figure() -> Figure {
        let bars = |label: &str, y: f64| {
            let point = |x| Point { x, y: Some(y), spread: Some((y * 0.7, y * 1.4)) };
            Series::measured(label, [point(0.0), point(1.0), Point { y: None, ..point(2.0) }])
        };
        let names = ["64", "1,000,000 sessions", "1024"].map(String::from).to_vec();
        let published =
            Series::published("", "the others", [Point::between(0.0, 1.3, 1.4), Point::from((1.0, 2.0))]);
        let time = |label: &str, at: f64| {
            let seen = |n: usize| (n as f64 / 10.0, (!(40..60).contains(&n) || n == 50).then_some(at));
            Series::measured(label, (0..100).map(seen))
        };
        let strip = Strip {
            label: "workers".into(),
            spans: vec![(0.0, 4.0, "1".into()), (4.0, 10.0, "2".into())],
            ticks: vec![4.0, 4.1],
        };
        let panels = vec![
            Panel::bars(
                "bars",
                ("payload", "Mpps"),
                names.clone(),
                vec![bars("one <&>", 2.0), bars("other", 0.0), published],
            ),
            Panel::lines("over time", ("seconds", "Mpps"), vec![time("other", 3.0), time("one <&>", 40.0)])
                .under(strip),
            Panel::lines("latency", ("seconds", "microseconds"), vec![time("median", 30_000.0)])
                .logarithmic(),
            Panel::lines("nothing", ("seconds", "us"), vec![Series::measured("nobody", Vec::<Point>::new())]),
            Panel::lines(
                "few",
                ("workers", "Gbit/s"),
                vec![
                    Series::measured("one <&>", [(1.0, 5.0), (2.0, 9.0)]),
                    Series::calculated("one <&>", [(2.0, 9.0), (6.0, 27.0)]),
                    Series::published("one <&>", "the others", [(5.0, 40.0)]),
                ],
            )
            .whole(),
        ];
        Figure { title: "five panels".into(), panels }
    }

    #[test]
    fn the_legend_lies_on_no_diagram_and_nothing_leaves_the_picture() {
        let figure = figure();
        let entries = figure.entries();
        let layout = figure.layout(&entries);
        for place in &layout.panels {
            assert!(!layout.legend.overlaps(&place.all) && !layout.legend.overlaps(&place.plot));
            assert!(place.plot.left > place.all.left && place.plot.bottom() < place.all.bottom());
            assert!(place.all.right() <= layout.area.right() && place.all.bottom() <= layout.area.bottom());
        }
        let canvas = draw(&figure);
        let inside = |text: &Rect| {
            text.left >= 0.0
                && text.top >= 0.0
                && text.right() <= layout.area.right()
                && text.bottom() <= layout.area.bottom()
        };
        for (at, text) in &canvas.texts {
            assert!(inside(at), "{text}: {at:?}");
        }
        // In the legend, each once: by name, by origin and by whether it is a bar.
        let legend: Vec<String> = entries.iter().map(Entry::text).collect();
        assert_eq!(
            legend,
            [
                "one <&>",
                "other",
                "the others",
                "other",
                "one <&>",
                "median",
                "one <&> (calculated)",
                "one <&>: the others"
            ]
        );
        for (at, text) in canvas.texts.iter().filter(|(at, _)| at.overlaps(&layout.legend)) {
            assert!(legend.contains(text), "{text}: {at:?}");
        }
    }

    #[test]
    fn no_text_lies_on_another() {
        let canvas = draw(&figure());
        for (number, (at, text)) in canvas.texts.iter().enumerate() {
            for (other_at, other) in canvas.texts.iter().skip(number + 1) {
                assert!(!at.overlaps(other_at), "{text} and {other}: {at:?} {other_at:?}");
            }
        }
        // Even the names that are wider than their room are there.
        assert!(canvas.texts.iter().any(|(_, text)| text == "1,000,000 sessions"));
        let svg = canvas.finish("t");
        assert!(!svg.contains("NaN") && svg.contains("one &lt;&amp;&gt;"));
    }

    #[test]
    fn gaps_are_not_bridged() {
        let figure = figure();
        let panel = &figure.panels[1];
        let scale = Scale::of(panel, Rect { left: 0.0, top: 0.0, width: 990.0, height: 100.0 });
        let found = stretches(&panel.series[0], &scale);
        let lengths: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(lengths, [40, 1, 40]);
        // The gap is as wide as the time for which there was nothing.
        let (before, after) = (found[0].last().unwrap().0, found[2][0].0);
        assert!((after - before - (scale.x(6.0) - scale.x(3.9))).abs() < 1e-6);
    }

    #[test]
    fn one_name_is_one_colour_in_all_panels() {
        let figure = figure();
        let names = figure.names();
        assert_eq!(names, ["one <&>", "other", "median"]);
        let entries = figure.entries();
        for entry in entries.iter().filter(|entry| entry.series.label == "one <&>") {
            assert_eq!(entry.look, palette::look(0));
        }
        // What others say of something else has no colour of ours.
        let other = entries.iter().find(|entry| entry.text() == "the others").unwrap();
        assert_eq!(other.look.colour, FRAME);
    }

    #[test]
    fn a_value_of_zero_is_said_and_a_missing_one_is_not() {
        let zero = |svg: &str| svg.matches(">0</text>").count();
        let one = |y| Figure {
            title: String::new(),
            panels: vec![
                Panel::bars(
                    "",
                    ("", ""),
                    vec!["x".into()],
                    vec![Series::measured("a", [(0.0, 5.0)]), Series::measured("b", [(0.0, y)])],
                )
                .logarithmic(),
            ],
        };
        assert_eq!((zero(&one(Some(0.0)).svg()), zero(&one(None).svg())), (1, 0));
    }
}

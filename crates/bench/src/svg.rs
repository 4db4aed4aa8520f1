//! A picture as the text of an SVG file: shapes, and texts that know how much room they take.
//!
//! Nothing is left to whoever shows it: no script, no style sheet, no font that has to be there. What a text measures is
//! reckoned with the widest of the common fonts, so that texts that don't overlap here don't overlap anywhere.

use crate::palette::{self, INK};
use std::fmt::Write;

/// Why no picture was written.
#[derive(Debug, thiserror::Error)]
#[error("can't write {path}: {source}")]
pub struct SvgError {
    /// The file.
    pub path: String,
    /// Why.
    pub source: std::io::Error,
}

/// Part of a picture, in pixels from its upper left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rect {
    /// Its left end.
    pub left: f64,
    /// Its upper end.
    pub top: f64,
    /// How wide.
    pub width: f64,
    /// How high.
    pub height: f64,
}

impl Rect {
    /// Its right end.
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Its lower end.
    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Whether they have a part in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right()
            && other.left < self.right()
            && self.top < other.bottom()
            && other.top < self.bottom()
    }
}

/// Which part of a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle.
    Middle,
    /// It ends there.
    End,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    /// As `#rrggbb`.
    pub colour: &'static str,
    /// In pixels.
    pub width: f64,
    /// Lengths of strokes and gaps; empty: none.
    pub dash: &'static str,
}

impl Stroke {
    /// Without gaps.
    pub const fn solid(colour: &'static str, width: f64) -> Self {
        Self { colour, width, dash: "" }
    }
}

/// How an area is filled.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// As `#rrggbb`, or `none`.
    pub colour: &'static str,
    /// From 0 to 1.
    pub opacity: f64,
    /// One of [`palette::HATCHES`] on top; 0: none.
    pub hatch: usize,
}

impl Fill {
    /// Nothing.
    pub const NONE: Self = Self { colour: "none", opacity: 1.0, hatch: 0 };

    /// A colour.
    pub const fn plain(colour: &'static str) -> Self {
        Self { colour, opacity: 1.0, hatch: 0 }
    }
}

/// What is drawn on.
#[derive(Debug)]
pub struct Canvas {
    width: f64,
    height: f64,
    body: String,
    /// Where which text stands.
    pub texts: Vec<(Rect, String)>,
}

impl Canvas {
    /// An empty one.
    pub const fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new(), texts: Vec::new() }
    }

    /// All of it.
    pub const fn area(&self) -> Rect {
        Rect { left: 0.0, top: 0.0, width: self.width, height: self.height }
    }

    /// A rectangle.
    pub fn rect(&mut self, at: Rect, fill: Fill, stroke: Option<Stroke>) {
        let Rect { left, top, width, height } = at;
        let place = format!(r#"<rect x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}""#);
        let Fill { colour, opacity, hatch } = fill;
        self.put(format_args!(r#"{place} fill="{colour}" fill-opacity="{opacity}"{}/>"#, stroked(stroke)));
        if hatch > 0 {
            self.put(format_args!(r#"{place} fill="url(#hatch{hatch})"/>"#));
        }
    }

    /// A line through these points.
    pub fn line(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        let points = listed(points);
        self.put(format_args!(r#"<polyline points="{points}" fill="none"{}/>"#, stroked(Some(stroke))));
    }

    /// An area with these corners.
    pub fn polygon(&mut self, corners: &[(f64, f64)], fill: Fill, stroke: Option<Stroke>) {
        let (points, Fill { colour, opacity, .. }) = (listed(corners), fill);
        self.put(format_args!(
            r#"<polygon points="{points}" fill="{colour}" fill-opacity="{opacity}"{}/>"#,
            stroked(stroke)
        ));
    }

    /// A circle.
    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, fill: Fill, stroke: Option<Stroke>) {
        let Fill { colour, opacity, .. } = fill;
        self.put(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius:.1}" fill="{colour}" fill-opacity="{opacity}"{}/>"#,
            stroked(stroke)
        ));
    }

    /// A text whose letters stand on `y`.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, size: f64, text: &str) {
        let width = text_width(text, size);
        let (name, left) = match anchor {
            Anchor::Start => ("start", x),
            Anchor::Middle => ("middle", x - width / 2.0),
            Anchor::End => ("end", x - width),
        };
        self.put(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" text-anchor="{name}" fill="{INK}">{}</text>"#,
            escaped(text)
        ));
        // Letters reach a little below the line that they stand on.
        let place = Rect { left, top: y - 0.8 * size, width, height: size };
        self.texts.push((place, text.to_owned()));
    }

    /// A text that is read from below, with its middle here.
    pub fn text_upwards(&mut self, (x, y): (f64, f64), size: f64, text: &str) {
        self.put(format_args!(
            r#"<text transform="translate({x:.1} {y:.1}) rotate(-90)" font-size="{size}" text-anchor="middle" fill="{INK}">{}</text>"#,
            escaped(text)
        ));
        let width = text_width(text, size);
        let place = Rect { left: x - 0.8 * size, top: y - width / 2.0, width: size, height: width };
        self.texts.push((place, text.to_owned()));
    }

    /// The file's text. `title` is read out where nobody sees the picture.
    pub fn finish(self, title: &str) -> String {
        let Self { width, height, body, .. } = self;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n\
             <title>{}</title>\n<defs>",
            escaped(title)
        );
        for (number, path) in palette::HATCHES.iter().enumerate().skip(1) {
            // Writing to a string can't fail, here and below.
            let _ = write!(
                text,
                r##"<pattern id="hatch{number}" width="6" height="6" patternUnits="userSpaceOnUse"><path d="{path}" stroke="#ffffff" stroke-width="1.4"/></pattern>"##
            );
        }
        text.push_str("</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
        text + &body + "</svg>\n"
    }

    fn put(&mut self, shape: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{shape}");
    }
}

fn stroked(stroke: Option<Stroke>) -> String {
    let Some(Stroke { colour, width, dash }) = stroke else { return String::new() };
    let dash = if dash.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dash}""#) };
    format!(r#" stroke="{colour}" stroke-width="{width}"{dash}"#)
}

fn listed(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

/// What a text measures, in pixels: a little more than in most fonts.
pub fn text_width(text: &str, size: f64) -> f64 {
    let of = |letter: char| match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '-' | '/' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.98,
        'A'..='Z' => 0.72,
        _ => 0.64,
    };
    text.chars().map(of).sum::<f64>() * size
}

/// A text as it stands between tags, or in an attribute.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_takes_the_room_that_it_says() {
        let mut canvas = Canvas::new(200.0, 100.0);
        canvas.text((100.0, 50.0), Anchor::Middle, 10.0, "a < b");
        canvas.text_upwards((20.0, 50.0), 10.0, "upwards");
        let [(across, _), (up, _)] = canvas.texts.as_slice() else { panic!("{:?}", canvas.texts) };
        assert!((across.left + across.width / 2.0 - 100.0).abs() < 1e-9 && across.top < 50.0);
        assert!(up.height > up.width && !across.overlaps(up));
        let svg = canvas.finish("t");
        assert!(svg.contains("a &lt; b") && svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn neighbours_do_not_overlap() {
        let at = |left, top| Rect { left, top, width: 10.0, height: 10.0 };
        assert!(at(0.0, 0.0).overlaps(&at(9.0, 9.0)));
        assert!(!at(0.0, 0.0).overlaps(&at(10.0, 0.0)) && !at(0.0, 0.0).overlaps(&at(0.0, 10.0)));
    }
}

//! Pictures of several panels: bars by category, lines over numbers, lines over time. What they say is here; how it is drawn, in
//! [`crate::plot`].
//!
//! Whatever has one name in a figure looks alike in all of its panels. What was not measured here looks different from what was:
//! arithmetic is dashed, and what somebody else published has marks of its own.

use crate::plot;
use crate::report::{Measured, Report};
use crate::svg::SvgError;
use std::path::Path;

/// A report and its picture.
pub struct Illustrated {
    /// The figures.
    pub report: Report,
    /// The picture.
    pub figure: Figure,
}

/// Panels in rows of two.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// From left to right, from top to bottom.
    pub panels: Vec<Panel>,
}

/// One diagram.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// The axes' names, with units.
    pub axes: (String, String),
    /// What stands on the axis at 0, 1, 2, ... for bars; none for lines over numbers.
    pub categories: Vec<String>,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Above the diagram: what held from when to when.
    pub strip: Option<Strip>,
    /// The vertical axis is logarithmic.
    pub logarithmic: bool,
    /// On the horizontal axis are whole things, such as workers.
    pub whole: bool,
}

/// What held over time, above a diagram.
#[derive(Clone, Debug, Default)]
pub struct Strip {
    /// Of what.
    pub label: String,
    /// From when to when, and what.
    pub spans: Vec<(f64, f64, String)>,
    /// Moments at which something happened.
    pub ticks: Vec<f64>,
}

/// Where a series comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Measured in this run.
    Measured,
    /// Arithmetic.
    Calculated,
    /// Somebody else's, read in the document that the label names.
    Published,
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// On the horizontal axis, or the number of the category.
    pub x: f64,
    /// On the vertical axis; `None`: nothing was seen here, and nothing is drawn.
    pub y: Option<f64>,
    /// The least and the greatest of several runs.
    pub spread: Option<(f64, f64)>,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y: Some(y), spread: None }
    }
}

impl From<(f64, Option<f64>)> for Point {
    fn from((x, y): (f64, Option<f64>)) -> Self {
        Self { x, y, spread: None }
    }
}

impl Point {
    /// A result with its spread, times `scale`; a gap where there is none.
    pub fn of(x: f64, result: Option<&Measured>, scale: f64) -> Self {
        let spread = |result: &Measured| (result.min * scale, result.max * scale);
        Self {
            x,
            y: result.map(|result| result.median * scale),
            spread: result.filter(|result| result.runs > 1).map(spread),
        }
    }

    /// Anything between these.
    pub const fn between(x: f64, least: f64, most: f64) -> Self {
        Self { x, y: Some(f64::midpoint(least, most)), spread: Some((least, most)) }
    }
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub label: String,
    /// In order of the horizontal axis.
    pub points: Vec<Point>,
    /// Where it comes from.
    pub origin: Origin,
    /// Who published it; empty: nobody.
    pub source: &'static str,
}

impl Series {
    fn new<P: Into<Point>>(
        label: impl Into<String>,
        points: impl IntoIterator<Item = P>,
        origin: Origin,
    ) -> Self {
        let points = points.into_iter().map(Into::into).collect();
        Self { label: label.into(), points, origin, source: "" }
    }

    /// Something measured.
    pub fn measured<P: Into<Point>>(label: impl Into<String>, points: impl IntoIterator<Item = P>) -> Self {
        Self::new(label, points, Origin::Measured)
    }

    /// Something calculated.
    pub fn calculated<P: Into<Point>>(label: impl Into<String>, points: impl IntoIterator<Item = P>) -> Self {
        Self::new(label, points, Origin::Calculated)
    }

    /// What somebody else published of that which has this name here, or of something else.
    pub fn published<P: Into<Point>>(
        label: impl Into<String>,
        source: &'static str,
        points: impl IntoIterator<Item = P>,
    ) -> Self {
        Self { source, ..Self::new(label, points, Origin::Published) }
    }

    /// Whether anything of it can be seen.
    pub fn is_visible(&self) -> bool {
        self.points.iter().any(|point| point.y.is_some())
    }
}

impl Panel {
    /// Bars in groups.
    pub fn bars(
        title: impl Into<String>,
        (across, up): (&str, &str),
        categories: Vec<String>,
        series: Vec<Series>,
    ) -> Self {
        Self { categories, ..Self::lines(title, (across, up), series) }
    }

    /// Lines over numbers or time.
    pub fn lines(title: impl Into<String>, (across, up): (&str, &str), series: Vec<Series>) -> Self {
        Self {
            title: title.into(),
            axes: (across.into(), up.into()),
            categories: Vec::new(),
            series,
            strip: None,
            logarithmic: false,
            whole: false,
        }
    }

    /// With this above it.
    #[must_use]
    pub fn under(mut self, strip: Strip) -> Self {
        self.strip = Some(strip);
        self
    }

    /// With a logarithmic vertical axis.
    #[must_use]
    pub const fn logarithmic(mut self) -> Self {
        self.logarithmic = true;
        self
    }

    /// With whole things on the horizontal axis.
    #[must_use]
    pub const fn whole(mut self) -> Self {
        self.whole = true;
        self
    }
}

impl Figure {
    /// As the text of an SVG file.
    pub fn svg(&self) -> String {
        plot::draw(self).finish(&self.title)
    }

    /// Into a file.
    pub fn write(&self, path: &Path) -> Result<(), SvgError> {
        let failed = |source| SvgError { path: path.display().to_string(), source };
        std::fs::write(path, self.svg()).map_err(failed)
    }
}

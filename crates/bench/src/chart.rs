//! Pictures of several panels: bars by category, lines over numbers, lines over time.
//!
//! [`crate::svg`] draws one result of a report as it is; a figure here is composed by its scenario, in the shape of a published
//! one. A line that is arithmetic and not measured is dashed.

use crate::report::Report;
use crate::svg::SvgError;
use plotters::coord::Shift;
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::path::Path;

/// Width and height of a panel, in pixels.
const PANEL: (u32, u32) = (620, 360);
/// Height of the line that names the figure.
const TITLE: u32 = 34;

/// A report and its picture.
pub struct Illustrated {
    /// The figures.
    pub report: Report,
    /// The picture.
    pub figure: Figure,
}

/// Panels in rows of two.
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// From left to right, from top to bottom.
    pub panels: Vec<Panel>,
}

/// One diagram.
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// The axes' names, with units.
    pub axes: (&'static str, &'static str),
    /// What stands on the axis at 0, 1, 2, ... for bars; none for lines over numbers.
    pub categories: Vec<String>,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Moments worth naming: a vertical line each.
    pub marks: Vec<(f64, String)>,
    /// The vertical axis is logarithmic.
    pub logarithmic: bool,
}

/// Points that belong together.
pub struct Series {
    /// Its name.
    pub label: String,
    /// In order of the horizontal axis.
    pub points: Vec<(f64, f64)>,
    /// Arithmetic, not measured.
    pub modelled: bool,
}

impl Series {
    /// Something measured.
    pub fn measured(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), points, modelled: false }
    }

    /// Something calculated.
    pub fn modelled(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), points, modelled: true }
    }
}

impl Panel {
    /// Bars in groups.
    pub fn bars(
        title: impl Into<String>,
        axes: (&'static str, &'static str),
        categories: Vec<String>,
        series: Vec<Series>,
    ) -> Self {
        Self { title: title.into(), axes, categories, series, marks: Vec::new(), logarithmic: false }
    }

    /// Lines over numbers or time.
    pub fn lines(title: impl Into<String>, axes: (&'static str, &'static str), series: Vec<Series>) -> Self {
        Self {
            title: title.into(),
            axes,
            categories: Vec::new(),
            series,
            marks: Vec::new(),
            logarithmic: false,
        }
    }

    /// With these moments named.
    #[must_use]
    pub fn marked(mut self, marks: Vec<(f64, String)>) -> Self {
        self.marks = marks;
        self
    }

    /// With a logarithmic vertical axis.
    #[must_use]
    pub const fn logarithmic(mut self) -> Self {
        self.logarithmic = true;
        self
    }
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

impl Figure {
    /// As the text of an SVG file.
    pub fn svg(&self) -> Result<String, SvgError> {
        let mut text = String::new();
        self.draw(&mut text)
            .map_err(|reason| SvgError::Draw { path: self.title.clone(), reason: reason.to_string() })?;
        Ok(text)
    }

    /// Into a file.
    pub fn write(&self, path: &Path) -> Result<(), SvgError> {
        let failed = |reason: std::io::Error| SvgError::Draw {
            path: path.display().to_string(),
            reason: reason.to_string(),
        };
        std::fs::write(path, self.svg()?).map_err(failed)
    }

    fn draw(&self, text: &mut String) -> Drawn {
        let columns = self.panels.len().clamp(1, 2);
        let rows = self.panels.len().div_ceil(columns).max(1);
        let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32 + TITLE);
        let root = SVGBackend::with_string(text, size).into_drawing_area();
        root.fill(&WHITE)?;
        let below = root.titled(&self.title, ("sans-serif", 20))?;
        for (panel, area) in self.panels.iter().zip(below.split_evenly((rows, columns))) {
            panel.draw(&area)?;
        }
        root.present()?;
        Ok(())
    }
}

/// The least and the greatest; `None` without any.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |range, value| {
        let (least, most) = range.unwrap_or((value, value));
        Some((value.min(least), value.max(most)))
    })
}

impl Panel {
    fn points(&self) -> impl Iterator<Item = &(f64, f64)> {
        self.series.iter().flat_map(|series| &series.points)
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
        let horizontal = if self.categories.is_empty() {
            let (left, right) = range(self.points().map(|point| point.0)).unwrap_or((0.0, 1.0));
            left..right.max(left + 1e-9)
        } else {
            -0.5..self.categories.len() as f64 - 0.5
        };
        let (least, most) =
            range(self.points().map(|point| point.1).filter(|y| *y > 0.0)).unwrap_or((0.1, 1.0));
        let mut chart = ChartBuilder::on(area);
        chart.caption(&self.title, ("sans-serif", 15)).margin(8).x_label_area_size(40).y_label_area_size(64);
        // Twice, for the two kinds of axes are two types.
        let label = |at: &f64| self.x_label(*at);
        if self.logarithmic {
            let bottom = 10_f64.powf(least.log10().floor());
            let top = 10_f64.powf(most.log10().ceil()).max(bottom * 10.0);
            let mut chart = chart.build_cartesian_2d(horizontal, (bottom..top).log_scale())?;
            chart
                .configure_mesh()
                .x_desc(self.axes.0)
                .y_desc(self.axes.1)
                .light_line_style(WHITE)
                .x_label_formatter(&label)
                .draw()?;
            self.draw_series(&mut chart, bottom, top)
        } else {
            let mut chart = chart.build_cartesian_2d(horizontal, 0.0..most * 1.15)?;
            let mut mesh = chart.configure_mesh();
            mesh.x_desc(self.axes.0).y_desc(self.axes.1).light_line_style(WHITE);
            if !self.categories.is_empty() {
                mesh.disable_x_mesh().x_labels(self.categories.len() * 2 + 1);
            }
            mesh.x_label_formatter(&label).draw()?;
            drop(mesh);
            self.draw_series(&mut chart, 0.0, most * 1.15)
        }
    }

    /// A category's name where it stands, and nothing between two.
    fn x_label(&self, at: f64) -> String {
        if self.categories.is_empty() {
            let digits = usize::from(at.fract().abs() > 1e-6) * 2;
            return format!("{at:.digits$}");
        }
        let whole = (at - at.round()).abs() < 1e-6 && at > -0.5;
        let category = whole.then(|| self.categories.get(at.round() as usize)).flatten();
        category.cloned().unwrap_or_default()
    }

    fn draw_series<'a, 'b: 'a, Y: Ranged<ValueType = f64>>(
        &self,
        chart: &mut ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, Y>>,
        bottom: f64,
        top: f64,
    ) -> Drawn {
        let width = 0.8 / self.series.len().max(1) as f64;
        for (index, series) in self.series.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            let points = series.points.iter().map(|&(x, y)| (x, y.max(bottom)));
            let drawn = if self.categories.is_empty() {
                let style = colour.stroke_width(2);
                if series.modelled {
                    chart.draw_series(DashedLineSeries::new(points, 5, 4, style))?
                } else {
                    chart.draw_series(LineSeries::new(points, style))?
                }
            } else {
                let left = index as f64 * width - 0.4;
                let style = if series.modelled { colour.mix(0.35).filled() } else { colour.filled() };
                let bar = |(x, y): (f64, f64)| {
                    Rectangle::new([(x + left, bottom), (x + left + width * 0.92, y)], style)
                };
                chart.draw_series(points.map(bar))?
            };
            drawn
                .label(&series.label)
                .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 14, y + 4)], colour.filled()));
        }
        for (at, name) in &self.marks {
            let line = PathElement::new([(*at, bottom), (*at, top)], BLACK.mix(0.4).stroke_width(1));
            chart.draw_series([line])?;
            let text = Text::new(name.clone(), (*at, top), ("sans-serif", 11).into_font());
            chart.draw_series([text])?;
        }
        if self.series.len() > 1 {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperLeft)
                .label_font(("sans-serif", 12))
                .background_style(WHITE.mix(0.75))
                .draw()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_kind_of_panel_is_drawn() {
        let series = || {
            vec![
                Series::measured("seen <&>", vec![(0.0, 1.0), (1.0, 2.5), (2.0, 0.0)]),
                Series::modelled("thought", vec![(0.0, 100.0), (2.0, 50.0)]),
            ]
        };
        let names = ["64", "512", "1024"].map(String::from).to_vec();
        let panels = vec![
            Panel::bars("bars", ("payload", "Mpps"), names, series()),
            Panel::lines("lines", ("s", "Mpps"), series()).marked(vec![(0.7, "launch".into())]),
            Panel::lines("logarithmic", ("s", "us"), series()).logarithmic(),
            Panel::lines("empty", ("s", "us"), vec![Series::measured("none", vec![])]),
        ];
        let text = Figure { title: "four".into(), panels }.svg().unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        for part in ["seen &lt;&amp;&gt;", "thought", "launch", "1024", "logarithmic", "Mpps"] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("NaN"));
    }
}

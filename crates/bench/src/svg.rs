//! A report as a picture: the median of one result over one numeric parameter, a line per combination of the others.

use crate::report::{Measured, Param, Report};
use plotters::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

/// Why no picture was drawn.
#[derive(Debug, thiserror::Error)]
pub enum SvgError {
    /// The drawing library failed, most often because the file can't be written.
    #[error("can't draw {path}: {reason}")]
    Draw {
        /// The file.
        path: String,
        /// What the library said.
        reason: String,
    },
    /// The report has nothing that varies over the parameter.
    #[error("no result of this report varies over {0}")]
    NothingToDraw(&'static str),
}

/// One line of the picture: its label, and its points as x, median, min, max.
type Series = BTreeMap<String, Vec<(f64, f64, f64, f64)>>;

/// Draws `name` over `x` (on a logarithmic axis) into an SVG file; the spread is drawn as a bar at each point.
pub fn draw(report: &Report, name: &'static str, x: &'static str, path: &Path) -> Result<(), SvgError> {
    let (series, unit) = series(report, name, x);
    if series.is_empty() {
        return Err(SvgError::NothingToDraw(x));
    }
    render(report, &series, name, unit, x, path)
        .map_err(|reason| SvgError::Draw { path: path.display().to_string(), reason: reason.to_string() })
}

fn series(report: &Report, name: &str, x: &'static str) -> (Series, &'static str) {
    let mut series = Series::new();
    let mut unit = "";
    for m in report.results.iter().filter(|m| m.name == name) {
        let Some(Param::Number(at)) = m.params.get(x) else { continue };
        unit = m.unit;
        series.entry(label(m, x)).or_default().push(((*at).max(1) as f64, m.median, m.min, m.max));
    }
    (series, unit)
}

fn label(m: &Measured, x: &str) -> String {
    let others = m.params.iter().filter(|(key, _)| **key != x);
    others.map(|(_, value)| value.to_string()).collect::<Vec<_>>().join(", ")
}

fn render(
    report: &Report,
    series: &Series,
    name: &str,
    unit: &str,
    x: &str,
    path: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let points = || series.values().flatten();
    let left = points().map(|p| p.0).fold(f64::INFINITY, f64::min);
    let right = points().map(|p| p.0).fold(left * 2.0, f64::max);
    let top = points().map(|p| p.3).fold(0.0, f64::max) * 1.1;
    let root = SVGBackend::new(path, (900, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("{}: {name}", report.scenario), ("sans-serif", 22))
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d((left..right).log_scale(), 0.0..top.max(1.0))?;
    chart
        .configure_mesh()
        .x_desc(format!("{x} ({})", report.machine))
        .y_desc(unit)
        .x_label_formatter(&|at| format!("{at:.0}"))
        .light_line_style(WHITE)
        .draw()?;
    for (index, (label, points)) in series.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        chart
            .draw_series(
                LineSeries::new(points.iter().map(|p| (p.0, p.1)), colour.stroke_width(2)).point_size(3),
            )?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart.draw_series(
            points.iter().map(|p| PathElement::new([(p.0, p.2), (p.0, p.3)], colour.stroke_width(1))),
        )?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    Ok(())
}

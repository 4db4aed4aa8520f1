//! Everything as one page that needs nothing beside it.

use super::ablation::Ablation;
use super::fit::{self, Cell};
use super::grid::Grid;
use super::{figures, tables, thesis};
use crate::chart::Figure;
use crate::html::STYLE;
use crate::svg::escaped;
use std::fmt::Write;

/// What is shown.
pub struct Page<'a> {
    /// What was typed.
    pub command: &'a str,
    /// The runs.
    pub grid: &'a Grid,
    /// The thesis' cells.
    pub cells: &'a [Cell],
    /// What `adaptive` is made of, if that was measured.
    pub ablation: Option<&'a Ablation>,
}

impl Page<'_> {
    /// Its text.
    pub fn html(&self) -> String {
        let title = "Schedulers on the simulated Jetson Xavier";
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n\
             <h1>{title}</h1>\n<p>Tables and figures have the shape of those in {}; it was measured there on an {}. Marks beside bars are what it printed. \
             All that is drawn here comes from a simulation of that machine; how well it is met stands at the end.</p>\n<p><code>{}</code></p>\n",
            escaped(&fit::source()),
            escaped(thesis::THESIS.hardware),
            escaped(self.command)
        );
        if let Some(table) = tables::verdicts(self.grid) {
            page.push_str(&table.html());
        }
        for test in self.grid.tests() {
            // Writing to a string can't fail.
            let _ = writeln!(page, "<section><h2 id=\"{0}\">The {0} test</h2>", test.name());
            page.push_str(&tables::comparison(self.grid, test).html());
            page.push_str(&tables::shares(self.grid, test).html());
            page.push_str(&figures::of_test(self.grid, test).svg());
            page.push_str("</section>\n");
        }
        if let Some(ablation) = self.ablation {
            page.push_str("<section><h2 id=\"ablation\">What adaptive is made of</h2>\n");
            tables::ablation(ablation).iter().for_each(|table| page.push_str(&table.html()));
            let title = "adaptive without its ingredients, and by thrift".to_owned();
            page.push_str(&Figure { title, panels: ablation.panels() }.svg());
            page.push_str("</section>\n");
        }
        page.push_str("<section><h2 id=\"fit\">How well the machine is met</h2>\n");
        page.push_str(&tables::fit_summary(self.cells).html());
        page.push_str(&tables::beyond(self.cells).html());
        let _ = writeln!(page, "<details><summary>all {} cells</summary>", self.cells.len());
        tables::cells(self.cells).iter().for_each(|table| page.push_str(&table.html()));
        page.push_str("</details></section>\n</body></html>\n");
        page
    }
}

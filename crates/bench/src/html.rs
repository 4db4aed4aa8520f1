//! Several scenarios as one page that needs nothing beside it: pictures inline, tables, the machine, the command.

use crate::chart::Illustrated;
use crate::report::{Measured, Param, figure};
use crate::svg::SvgError;
use control::upf::calendar;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Colours of the page.
const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1280px;margin:2em auto;padding:0 1em;color:#222}\
svg{max-width:100%;height:auto}table{border-collapse:collapse;font-size:13px}td,th{padding:2px 10px;border-bottom:1px solid #ddd;\
text-align:left}td.n{text-align:right;font-variant-numeric:tabular-nums}h2{margin-top:2em}.note{color:#555}summary{cursor:pointer}";

/// A scenario's place in the page.
pub struct Section<'a> {
    /// Which published figures it has the shape of.
    pub shape_of: &'static str,
    /// What to look for.
    pub about: &'static str,
    /// What was found.
    pub found: &'a Illustrated,
}

/// The page. `left_out`: what these figures don't contain; `missing`: scenarios without result, and why.
pub fn page(
    title: &str,
    command: &str,
    sections: &[Section<'_>],
    left_out: &[&str],
    missing: &[(&str, String)],
) -> Result<String, SvgError> {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n\
         <h1>{title}</h1>\n",
        title = escaped(title)
    );
    if let Some(first) = sections.first() {
        let machine = &first.found.report.machine;
        put(
            &mut page,
            format_args!(
                "<p>{} · Millrace {} · <code>{}</code> · {}</p>\n",
                escaped(&machine.to_string()),
                machine.millrace,
                escaped(command),
                calendar::utc((machine.time + calendar::NTP_AT_1970) as u32)
            ),
        );
    }
    page.push_str("<h2>What is left out</h2>\n<ul>\n");
    left_out.iter().for_each(|item| put(&mut page, format_args!("<li>{}</li>\n", escaped(item))));
    page.push_str("</ul>\n");
    for (scenario, error) in missing {
        put(
            &mut page,
            format_args!("<p><strong>{} is missing:</strong> {}</p>\n", escaped(scenario), escaped(error)),
        );
    }
    for section in sections {
        let report = &section.found.report;
        put(
            &mut page,
            format_args!(
                "<h2 id=\"{0}\">{0}</h2>\n<p>{1} <span class=\"note\">{2}</span></p>\n{3}\n",
                report.scenario,
                escaped(section.about),
                escaped(section.shape_of),
                section.found.figure.svg()?
            ),
        );
        report.notes.iter().for_each(|note| {
            put(&mut page, format_args!("<p class=\"note\">{}</p>\n", escaped(note)));
        });
        put(&mut page, format_args!("<details><summary>{} results</summary>\n", report.results.len()));
        table(&mut page, &report.results);
        page.push_str("</details>\n");
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

/// All results, a column for each parameter.
fn table(page: &mut String, results: &[Measured]) {
    let keys: BTreeSet<&str> = results.iter().flat_map(|result| result.params.keys().copied()).collect();
    page.push_str("<table><tr><th>result</th>");
    keys.iter().for_each(|key| put(page, format_args!("<th>{}</th>", escaped(key))));
    page.push_str("<th>median</th><th>min</th><th>max</th><th>unit</th><th>runs</th></tr>\n");
    for result in results {
        put(page, format_args!("<tr><td>{}</td>", escaped(result.name)));
        for key in &keys {
            let value = result.params.get(key).map(Param::to_string).unwrap_or_default();
            put(page, format_args!("<td>{}</td>", escaped(&value)));
        }
        for value in [result.median, result.min, result.max] {
            put(page, format_args!("<td class=\"n\">{}</td>", figure(value)));
        }
        put(
            page,
            format_args!("<td>{}</td><td class=\"n\">{}</td></tr>\n", escaped(result.unit), result.runs),
        );
    }
    page.push_str("</table>\n");
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = page.write_fmt(text);
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::chart::{Figure, Panel, Series};
    use crate::report::Report;
    use tables::clock::Tsc;

    #[test]
    fn the_page_stands_alone_and_escapes_what_it_shows() {
        let mut report = Report::new("skew", &Tsc::process());
        report.machine.time = 1_795_303_109;
        report.results.push(Measured::of(
            "packets_lost",
            "packets",
            &[("model", "rtc".into()), ("phase", 125.into())],
            &[1_234.0],
        ));
        report.results.push(Measured::of("packets_per_second", "1/s", &[("workers", 2.into())], &[1.0]));
        report.notes.push("a < b".into());
        let lines = vec![Series::measured("sent", vec![(0.0, 1.0)])];
        let panels = vec![Panel::lines("over time", ("s", "Mpps"), lines)];
        let found = Illustrated { report, figure: Figure { title: "skew".into(), panels } };
        let section = Section { shape_of: "Figure 5.6", about: "One worker's load grows.", found: &found };
        let failed = [("scale", "worker 1 is <dead>".into())];
        let page = page("S1", "millrace bench --out \"x\"", &[section], &["no PCIe"], &failed).unwrap();
        for part in [
            "<svg",
            "a &lt; b",
            "2026-11-21T23:18:29Z",
            "no PCIe",
            "&lt;dead&gt;",
            "--out &quot;x&quot;",
            "<tr><td>packets_lost</td><td>rtc</td><td>125</td><td></td><td class=\"n\">1,234</td>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        // Nothing is fetched from anywhere.
        assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("href="));
    }
}

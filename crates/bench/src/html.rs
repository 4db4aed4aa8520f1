//! Several scenarios as one page that needs nothing beside it: what was claimed and whether it came true, the machine, pictures
//! inline, tables, the command.

use crate::chart::Illustrated;
use crate::claims::{Claim, Verdict};
use crate::jitter::Fitness;
use crate::published::Document;
use crate::report::{Measured, Param, figure};
use crate::svg::escaped;
use pfcp::calendar;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What the page looks like. A verdict is a word; its colour only helps.
pub(crate) const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1240px;margin:2em auto;padding:0 1em;color:#222}\
svg{max-width:100%;height:auto}table{border-collapse:collapse;font-size:13px}td,th{padding:3px 10px;border-bottom:1px solid #ddd;\
text-align:left;vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}h2{margin-top:2em}.note{color:#555}\
summary{cursor:pointer}.met{color:#123f7c;font-weight:bold}.missed{color:#b34700;font-weight:bold}.open{color:#555;font-style:italic}\
@media print{section{break-inside:avoid}}";

/// A scenario's place in the page.
pub struct Section<'a> {
    /// What it is called.
    pub title: &'static str,
    /// Which published figures it has the shape of.
    pub shape_of: &'static str,
    /// What to look for.
    pub about: &'static str,
    /// What was found.
    pub found: &'a Illustrated,
    /// What the machine was like before and after.
    pub fitness: Fitness,
}

/// All that a page says.
pub struct Page<'a> {
    /// Its headline.
    pub title: &'a str,
    /// Whose experiments these are.
    pub document: &'a Document,
    /// What was typed.
    pub command: &'a str,
    /// What was claimed.
    pub claims: &'a [Claim],
    /// What was measured.
    pub sections: &'a [Section<'a>],
    /// What these figures don't contain.
    pub left_out: &'a [&'a str],
    /// Scenarios without result, and why.
    pub missing: &'a [(&'a str, String)],
}

impl Page<'_> {
    /// Its text.
    pub fn html(&self) -> String {
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n\
             <h1>{title}</h1>\n",
            title = escaped(self.title)
        );
        self.head(&mut page);
        for (scenario, error) in self.missing {
            put(
                &mut page,
                format_args!(
                    "<p><strong>{} is missing:</strong> {}</p>\n",
                    escaped(scenario),
                    escaped(error)
                ),
            );
        }
        claims(&mut page, self.claims);
        fitness(&mut page, self.sections);
        page.push_str("<h2>What is left out</h2>\n<ul>\n");
        self.left_out.iter().for_each(|item| put(&mut page, format_args!("<li>{}</li>\n", escaped(item))));
        page.push_str("</ul>\n");
        self.sections.iter().for_each(|section| section.write(&mut page));
        page.push_str("</body></html>\n");
        page
    }

    fn head(&self, page: &mut String) {
        let Document { author, title, kind, year, hardware } = self.document;
        put(
            page,
            format_args!(
                "<p>The experiments are those of {}, <cite>{}</cite>, {}, {year}. Figures of it are what its text says; its curves, which \
                 have no numbers, are not guessed. It was measured on other hardware: {}.</p>\n",
                escaped(author),
                escaped(title),
                escaped(kind),
                escaped(hardware)
            ),
        );
        if let Some(first) = self.sections.first() {
            let machine = &first.found.report.machine;
            put(
                page,
                format_args!(
                    "<p>{} · Millrace {} · <code>{}</code> · {}</p>\n",
                    escaped(&machine.to_string()),
                    machine.millrace,
                    escaped(self.command),
                    calendar::utc((machine.time + calendar::NTP_AT_1970) as u32)
                ),
            );
        }
    }
}

impl Section<'_> {
    fn write(&self, page: &mut String) {
        let report = &self.found.report;
        put(
            page,
            format_args!(
                "<section><h2 id=\"{0}\">{1}</h2>\n<p>{2} <span class=\"note\">{3} <code>millrace bench {0}</code></span></p>\n",
                report.scenario,
                escaped(self.title),
                escaped(self.about),
                escaped(self.shape_of)
            ),
        );
        report
            .notes
            .iter()
            .for_each(|note| put(page, format_args!("<p class=\"note\">{}</p>\n", escaped(note))));
        page.push_str(&self.found.figure.svg());
        page.push_str("</section>\n");
        put(page, format_args!("<details><summary>{} results</summary>\n", report.results.len()));
        table(page, &report.results);
        page.push_str("</details>\n");
    }
}

/// What was claimed, and whether it came true.
fn claims(page: &mut String, claims: &[Claim]) {
    if claims.is_empty() {
        return;
    }
    let count = |word| claims.iter().filter(|claim| claim.verdict.word() == word).count();
    put(
        page,
        format_args!(
            "<h2>What came true</h2>\n<p>Of {} claims {} are met, {} missed, {} not judged.</p>\n<table><tr><th>section</th><th>claim</th>\
             <th>theirs, as the text says</th><th>ours</th><th>verdict</th><th>rule</th></tr>\n",
            claims.len(),
            count("met"),
            count("missed"),
            count("not judged")
        ),
    );
    for claim in claims {
        let class = match claim.verdict {
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::NotJudged(_) => "open",
        };
        let why = claim.verdict.why();
        put(
            page,
            format_args!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td><span class=\"{class}\">{}</span>{}{}</td><td class=\"note\">{}</td></tr>\n",
                escaped(if claim.place.is_empty() { "beyond it" } else { claim.place }),
                escaped(claim.says),
                escaped(&claim.theirs),
                escaped(&claim.ours),
                claim.verdict.word(),
                if why.is_empty() { "" } else { ": " },
                escaped(why),
                escaped(&claim.rule)
            ),
        );
    }
    page.push_str("</table>\n");
}

/// Whether the machine was fit for it.
fn fitness(page: &mut String, sections: &[Section<'_>]) {
    if sections.is_empty() {
        return;
    }
    put(
        page,
        format_args!(
            "<h2>The machine</h2>\n<p>Before and after each scenario a loop on each core did nothing but read the clock. What it spent in \
             gaps of more than {} us was taken from it by something else. More than {} % of the time is too much for a verdict (the worse \
             of before and after counts).</p>\n<table><tr><th>scenario</th><th>taken</th><th>longest gap</th><th></th></tr>\n",
            Fitness::GAP_US,
            Fitness::MOST_PERCENT
        ),
    );
    for section in sections {
        let Fitness { lost_percent, longest_us } = section.fitness;
        let (class, word) =
            if section.fitness.unfit().is_some() { ("missed", "too noisy") } else { ("met", "quiet enough") };
        put(
            page,
            format_args!(
                "<tr><td>{}</td><td class=\"n\">{} %</td><td class=\"n\">{} us</td><td class=\"{class}\">{word}</td></tr>\n",
                section.found.report.scenario,
                figure(lost_percent),
                figure(longest_us)
            ),
        );
    }
    page.push_str("</table>\n");
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
        // A ratio has no unit worth a letter that looks like a name.
        let unit = if result.unit == "x" { "times" } else { result.unit };
        put(page, format_args!("<td>{}</td><td class=\"n\">{}</td></tr>\n", escaped(unit), result.runs));
    }
    page.push_str("</table>\n");
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = page.write_fmt(text);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::chart::{Figure, Panel, Series};
    use crate::claims;
    use crate::published::THESIS;
    use crate::report::Report;
    use tables::clock::Tsc;

    #[test]
    fn the_page_stands_alone_and_escapes_what_it_shows() {
        let mut report = Report::new("skew", &Tsc::process());
        report.machine.time = 1_795_303_109;
        let params = [("model", "rtc-rebalancing".into()), ("phase", 125.into())];
        for lost in ["packets_lost", "packets_lost_running"] {
            report.results.push(Measured::of(lost, "packets", &params, &[1_234.0]));
        }
        let params = [("model", "rtc-rebalancing".into()), ("workers", 2.into())];
        report.results.push(Measured::of("packets_per_second", "1/s", &params, &[1.0]));
        for phase in [125, 200] {
            let params = [("model", "rtc-rebalancing".into()), ("phase", phase.into())];
            report.results.push(Measured::of("packets_offered", "packets", &params, &[9_000.0]));
        }
        report.notes.push("a < b".into());
        let lines = vec![Series::measured("sent", [(0.0, 1.0)])];
        let panels = vec![Panel::lines("over time", ("s", "Mpps"), lines)];
        let found = Illustrated { report, figure: Figure { title: "skew".into(), panels } };
        let fitness = Fitness { lost_percent: 0.31, longest_us: 88.0 };
        let claims = claims::judge(&found.report, fitness);
        let section = Section {
            title: "Skewed load",
            shape_of: "Figure 5.6",
            about: "One worker's load grows.",
            found: &found,
            fitness,
        };
        let page = Page {
            title: "S1",
            document: &THESIS,
            command: "millrace bench --out \"x\"",
            claims: &claims,
            sections: &[section],
            left_out: &["no PCIe"],
            missing: &[("scale", "worker 1 is <dead>".into())],
        };
        let page = page.html();
        for part in [
            "<svg",
            "a &lt; b",
            "2026-11-21T23:18:29Z",
            "no PCIe",
            "&lt;dead&gt;",
            "--out &quot;x&quot;",
            "<tr><td>packets_lost</td><td>rtc-rebalancing</td><td>125</td><td></td><td class=\"n\">1,234</td>",
            // Whose figures these are compared with.
            "Prateek Agarwal, <cite>User Plane Function (5G)",
            "2020",
            // Of a hundred packets 13.7 were lost.
            "Of 2 claims 0 are met, 1 missed, 1 not judged.",
            "<span class=\"missed\">missed</span>",
            "<td class=\"n\">0.31 %</td><td class=\"n\">88.0 us</td><td class=\"met\">quiet enough</td>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        // Nothing is fetched from anywhere.
        assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("href="));
    }
}

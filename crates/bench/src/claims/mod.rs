//! What is claimed of the scenarios of `seeds`, by the document that they repeat and beyond it, and whether it came true here.
//!
//! A claim is judged by figures of a report alone, by a rule that is written beside it. It can be missed. Where the machine kept
//! threads from running too much ([`Fitness`]), or the figures that it takes aren't there, nothing is judged; but a packet that
//! overtook another was overtaken on any machine.

use crate::crew::Model;
use crate::jitter::Fitness;
use crate::published::{self, LINK};
use crate::report::{Measured, Param, Report, figure};
use crate::saturated::Sizes;
use crate::skew;
use serde::Serialize;
use std::fmt;

/// What "does not depend on" and "linearly" leave to chance.
const ALIKE: f64 = 0.95;
/// What "slight" leaves.
const SLIGHT: f64 = 0.9;
/// What of a hundred packets may be lost where none should be seen to be, in a picture.
const UNSEEN_PERCENT: f64 = 0.1;
/// How many times the latency before is no appreciable change.
const APPRECIABLE: f64 = 2.0;

/// Whether a claim came true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", content = "why")]
pub enum Verdict {
    /// It did.
    Met,
    /// It did not.
    Missed,
    /// Nothing can be said, and why.
    NotJudged(String),
}

impl Verdict {
    fn of(came_true: Option<bool>) -> Self {
        match came_true {
            Some(true) => Self::Met,
            Some(false) => Self::Missed,
            None => Self::NotJudged("the figures for it were not measured".into()),
        }
    }

    /// In a word.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::NotJudged(_) => "not judged",
        }
    }

    /// Why nothing can be said.
    pub fn why(&self) -> &str {
        match self {
            Self::NotJudged(why) => why,
            Self::Met | Self::Missed => "",
        }
    }
}

/// One claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// The scenario whose figures judge it.
    pub scenario: &'static str,
    /// The document's section, and the figure that belongs to it; empty: beyond the document.
    pub place: &'static str,
    /// What is claimed.
    pub says: &'static str,
    /// The document's own figure, as its text says.
    pub theirs: String,
    /// What was measured here.
    pub ours: String,
    /// When it is met.
    pub rule: String,
    /// Whether it is.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// It was missed by something that no machine could have done to it.
    #[serde(skip)]
    stands: bool,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "beyond" } else { self.place };
        write!(
            f,
            "{:10}  {}: {} (theirs: {}; ours: {})",
            self.verdict.word(),
            place,
            self.says,
            self.theirs,
            self.ours
        )?;
        if self.verdict.why().is_empty() { Ok(()) } else { write!(f, ": {}", self.verdict.why()) }
    }
}

/// What can be claimed of a scenario's report, taken on a machine in this state.
pub fn judge(report: &Report, fitness: Fitness) -> Vec<Claim> {
    let mut claims = match report.scenario {
        "payload-size" => payload_size(report),
        "sessions" => sessions(report),
        "cores" => cores(report),
        "skew" => skew(report),
        "scale" => scale(report),
        "moves" => moves(report),
        _ => Vec::new(),
    };
    if let Some(why) = fitness.unfit() {
        let excused = claims.iter_mut().filter(|claim| !claim.stands);
        excused.for_each(|claim| claim.verdict = Verdict::NotJudged(why.clone()));
    }
    claims.iter_mut().for_each(|claim| claim.scenario = report.scenario);
    claims
}

/// A claim without verdict.
fn claim(place: &'static str, says: &'static str, theirs: impl Into<String>) -> Claim {
    Claim {
        scenario: "",
        place,
        says,
        theirs: theirs.into(),
        ours: "not measured".into(),
        rule: String::new(),
        verdict: Verdict::of(None),
        stands: false,
    }
}

impl Claim {
    /// Judged by all of these values, each of which `rule` calls good or not; by none, if there are none.
    fn by(mut self, rule: impl Into<String>, unit: &str, values: &[f64], good: impl Fn(f64) -> bool) -> Self {
        self.rule = rule.into();
        if let Some(span) = span(values) {
            self.ours = span + unit;
            self.verdict = Verdict::of(Some(values.iter().all(|value| good(*value))));
        }
        self
    }

    /// Judged by what was lost in all of these, of which each may lose so much. What was lost while a worker did not run may be the
    /// machine's doing or the worker's own, and nothing tells which: a loss that is too much only with it is not judged.
    fn by_losses(self, rule: &str, unit: &str, losses: &[Loss], limit: f64) -> Self {
        let all: Vec<f64> = losses.iter().map(|loss| loss.all).collect();
        let running: Vec<f64> = losses.iter().map(|loss| loss.running).collect();
        let rule = format!(
            "{rule}; not judged where it is more only by what came while a worker did not run for longer than a ring lasts"
        );
        let mut claim = self.by(rule, unit, &all, |lost| lost <= limit);
        if let (Verdict::Missed, Some(while_running)) = (&claim.verdict, span(&running)) {
            claim.ours = format!("{}, {while_running} while workers ran", claim.ours);
            if running.iter().all(|lost| *lost <= limit) {
                let why = "packets came while a worker did not run, and whose doing that was isn't known";
                claim.verdict = Verdict::NotJudged(why.into());
            }
        }
        claim
    }
}

/// What was lost of something, by the run that lost the most.
#[derive(Clone, Copy, Debug)]
struct Loss {
    /// All of it.
    all: f64,
    /// What was lost though workers ran.
    running: f64,
}

impl Loss {
    /// What was lost of these packets.
    fn of(report: &Report, offered: &Measured) -> Option<Self> {
        let params: Vec<_> = offered.params.clone().into_iter().collect();
        let most = |name| report.find(name, &params).map(|lost| lost.max);
        Some(Self { all: most("packets_lost")?, running: most("packets_lost_running")? })
    }

    /// In parts of a hundred packets that were offered.
    fn percent_of(self, offered: &Measured) -> Self {
        let percent = |lost: f64| 100.0 * lost / offered.median.max(1.0);
        Self { all: percent(self.all), running: percent(self.running) }
    }
}

/// From the least to the greatest, in words.
fn span(values: &[f64]) -> Option<String> {
    let (least, most) = ends(values)?;
    Some(if least < most { format!("{} to {}", figure(least), figure(most)) } else { figure(least) })
}

/// The least and the greatest.
fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    Some((least, values.iter().copied().max_by(f64::total_cmp)?))
}

const DIRECTIONS: [&str; 2] = ["uplink", "downlink"];

fn payload_size(report: &Report) -> Vec<Claim> {
    const RATE: &str = "packets_per_second";
    let mut ratios = Vec::new();
    for pipeline in report.all(RATE, &[("model", Model::PipelineReturning.name().into())]) {
        let mut params = pipeline.params.clone();
        params.insert("model", Model::Rtc.name().into());
        let rtc = report.median(RATE, &params.into_iter().collect::<Vec<_>>());
        ratios.extend(rtc.filter(|_| pipeline.median > 0.0).map(|rtc| rtc / pipeline.median));
    }
    let rtc = |direction: &'static str| -> Vec<f64> {
        let params = [("model", Model::Rtc.name().into()), ("direction", direction.into())];
        report.all(RATE, &params).map(|result| result.median).collect()
    };
    let spans: Vec<f64> = DIRECTIONS
        .iter()
        .filter_map(|direction| ends(&rtc(direction)))
        .map(|(least, most)| least / most)
        .collect();
    let [up, down] = DIRECTIONS.map(rtc);
    let better: Vec<f64> = up.iter().zip(&down).map(|(up, down)| up / down).collect();
    let (least, most) = published::RTC_TO_PIPELINE;
    vec![
        claim(
            "5.2.1, figure 5.2",
            "Run-to-completion forwards more than a pipeline with one worker core, whatever the payload",
            format!("{least} to {most} times"),
        )
        .by(format!("at least {least} times at every size, both ways; the dispatcher's core isn't counted, as there"), " times", &ratios, |ratio| ratio >= least),
        claim("5.2.1, figure 5.2", "Packets a second don't depend on the payload", "negligible variation, until 1,024 B fill the link")
            .by(format!("the least of run-to-completion at least {ALIKE} of the most, both ways"), " of the most", &spans, |part| part >= ALIKE),
        claim("5.2.1, figure 5.2", "Uplink does better than downlink, which has to encapsulate", "better")
            .by("uplink by downlink above 1 at every size, run-to-completion", " times", &better, |ratio| ratio > 1.0),
    ]
}

fn sessions(report: &Report) -> Vec<Claim> {
    let mut parts = Vec::new();
    for direction in DIRECTIONS {
        let params = [("model", Model::Rtc.name().into()), ("direction", direction.into())];
        let rates: Vec<(u64, f64)> = report
            .all("packets_per_second", &params)
            .filter_map(|result| Some((result.number("sessions")?, result.median)))
            .collect();
        let fewest = rates.iter().min_by_key(|(sessions, _)| *sessions);
        let others = rates.iter().filter(|(sessions, _)| *sessions <= published::SESSIONS as u64);
        parts.extend(fewest.into_iter().flat_map(|(_, one)| others.clone().map(move |(_, rate)| rate / one)));
    }
    vec![
        claim("5.2.2, figure 5.3", "The number of sessions costs run-to-completion little", "slight or negligible, to 65,536 sessions")
            .by(
                format!("with any number of sessions up to 65,536 at least {SLIGHT} of the rate with the fewest, both ways"),
                " of the rate with the fewest sessions",
                &parts,
                |part| part >= SLIGHT,
            ),
    ]
}

/// How much of one worker's rate each of several did; with each, how much independent workers did of the same packets.
fn speedups(report: &Report) -> Vec<(f64, Option<f64>)> {
    let each = |result: &Measured| Some(result.median / result.number("workers")? as f64);
    let of_each = |result: &Measured| {
        let mut same = result.params.clone();
        same.remove("workers");
        same.insert("model", "copies".into());
        let copies: Vec<_> = same.into_iter().collect();
        let copies: Vec<f64> = report.all("speedup", &copies).filter_map(each).collect();
        Some((each(result)?, ends(&copies).map(|(least, _)| least)))
    };
    report.all("speedup", &[("model", Model::Rtc.name().into())]).filter_map(of_each).collect()
}

/// Whether more cores do more, as far as there are any.
fn linear(report: &Report) -> Claim {
    let speedups = speedups(report);
    let all: Vec<f64> = speedups.iter().map(|(each, _)| *each).collect();
    let mut linear = claim("5.2.3 and 5.3, figures 5.4 and 5.5", "Throughput grows linearly with the number of cores", "linearly").by(
        format!(
            "run-to-completion with all cores that there are does at least {ALIKE} of one worker's rate for each; not judged where independent workers don't either, and it does at least {ALIKE} of what they do"
        ),
        " of one worker's rate for each",
        &all,
        |each| each >= ALIKE,
    );
    // Independent workers share nothing but the machine: what they lose is its doing, and no more than that.
    let excused = |(each, host): &(f64, Option<f64>)| {
        *each >= ALIKE || host.is_some_and(|host| host < ALIKE && *each >= ALIKE * host)
    };
    let hosts: Vec<f64> = speedups.iter().filter_map(|(_, host)| *host).collect();
    if let (Verdict::Missed, Some(host)) = (&linear.verdict, span(&hosts))
        && speedups.iter().all(excused)
    {
        linear.verdict = Verdict::NotJudged(format!(
            "independent workers, which share nothing but the machine, did {host} each too: these are not whole cores"
        ));
    }
    linear
}

fn cores(report: &Report) -> Vec<Claim> {
    let mut claims = vec![linear(report)];
    claims.extend(Model::BOTH.map(|model| full_link(report, model)));
    claims
}

/// How many workers fill the link, and whether that was measured.
#[derive(Clone, Copy, Debug)]
struct Full {
    workers: u64,
    calculated: bool,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.workers, if self.calculated { " (calculated)" } else { "" })
    }
}

/// The fewest workers that fill the link, and the most of which anything is known.
fn filled(report: &Report, params: &[(&'static str, Param)], octets: f64) -> (Option<Full>, Option<u64>) {
    let mut rates: Vec<(Full, f64)> = report
        .all("packets_per_second", params)
        .filter_map(|result| {
            let calculated = result.params.contains_key("calculated");
            Some((Full { workers: result.number("workers")?, calculated }, result.median))
        })
        .collect();
    rates.sort_by_key(|(full, _)| full.workers);
    let full = rates.iter().find(|(_, rate)| rate * 8e-9 * octets >= LINK).map(|(full, _)| *full);
    (full, rates.last().map(|(most, _)| most.workers))
}

/// Whether no more workers than theirs fill the link.
fn full_link(report: &Report, model: Model) -> Claim {
    let mut claim = claim(
        "5.2.3, figures 5.4 and 5.5",
        match model {
            Model::Rtc => "So many cores fill a link of 40 Gbit/s with run-to-completion",
            _ => "So many workers fill it in a pipeline",
        },
        "",
    );
    claim.rule =
        "no more than theirs; more than were there to measure are calculated from one, which can miss it but not meet it"
            .into();
    let (mut theirs, mut ours, mut good, mut calculated) = (Vec::new(), Vec::new(), None, Vec::new());
    for (name, payload, sizes) in
        [("64 B", Param::Number(64), Sizes::Payload(64)), ("IMIX", "imix".into(), Sizes::Imix)]
    {
        for direction in DIRECTIONS {
            let uplink = direction == "uplink";
            let params = [
                ("model", model.name().into()),
                ("direction", direction.into()),
                ("payload", payload.clone()),
            ];
            let (full, Some(most)) = filled(report, &params, sizes.octets(!uplink)) else { continue };
            let read = published::cores_for_link(model, sizes, uplink);
            theirs.push(format!(
                "{name} {direction} {}",
                read.map_or_else(|| "more than 6".into(), |cores| cores.to_string())
            ));
            ours.push(format!(
                "{name} {direction} {}",
                full.map_or_else(|| format!("more than {most}"), |full| full.to_string())
            ));
            if let Some(read) = read {
                good = Some(good.unwrap_or(true) && full.is_some_and(|full| full.workers <= read as u64));
                if full.is_some_and(|full| full.calculated) {
                    calculated.push(format!("{name} {direction}"));
                }
            }
        }
    }
    if good.is_some() {
        (claim.theirs, claim.ours) = (theirs.join(", "), ours.join(", "));
        claim.verdict = match good {
            Some(true) if !calculated.is_empty() => Verdict::NotJudged(format!(
                "so many workers were not there to measure: calculated for {}",
                calculated.join(", ")
            )),
            good => Verdict::of(good),
        };
    }
    claim
}

fn skew(report: &Report) -> Vec<Claim> {
    // What was lost of a hundred packets in each step that all workers together can take.
    let lost = |model: &'static str| -> Vec<Loss> {
        let params = [("model", model.into())];
        let workers = report.find("packets_per_second", &params).and_then(|rate| rate.number("workers"));
        let fits = |step: &&Measured| {
            step.number("phase").zip(workers).is_some_and(|(hot, workers)| skew::fits(hot, workers))
        };
        let steps = report.all("packets_offered", &params).filter(fits);
        steps.filter_map(|step| Some(Loss::of(report, step)?.percent_of(step))).collect()
    };
    let rule = format!("at most {UNSEEN_PERCENT} % lost in any step that all workers together can take");
    vec![
        claim(
            "5.2.4, figure 5.6",
            "A pipeline sends whatever one worker's load is, until all workers are at their limit",
            "all is sent, but in the last step",
        )
        .by_losses(&rule, " % lost", &lost("pipeline-rebalancing"), UNSEEN_PERCENT),
        claim("", "Run-to-completion does so too", "it can't: what one core can't take is dropped")
            .by_losses(&rule, " % lost", &lost("rtc-rebalancing"), UNSEEN_PERCENT),
    ]
}

fn scale(report: &Report) -> Vec<Claim> {
    const PHASES: [&str; 2] = ["joining", "leaving"];
    let of = |model: &'static str, phase: &'static str| [("model", model.into()), ("phase", phase.into())];
    let took = |model| -> Vec<f64> {
        PHASES.iter().filter_map(|phase| report.median("reconfiguration_us", &of(model, phase))).collect()
    };
    let late = |model, phase, percentile: &'static str| {
        let params = [of(model, phase).as_slice(), &[("percentile", percentile.into())]].concat();
        report.find("latency_us", &params)
    };
    // The longest is that of all launches, and so is what was lost: nobody is helped by a launch in the middle.
    let longest: Vec<f64> =
        PHASES.iter().filter_map(|phase| late("rtc", phase, "100")).map(|us| us.max / 1e3).collect();
    let change = |model| -> Vec<f64> {
        let before = late(model, "before", "99").filter(|us| us.median > 0.0);
        let during = PHASES.iter().filter_map(|phase| late(model, phase, "99"));
        before.map(|before| during.map(|us| us.median / before.median).collect()).unwrap_or_default()
    };
    let lost = |model| -> Vec<Loss> {
        let offered = PHASES.iter().filter_map(|phase| report.find("packets_offered", &of(model, phase)));
        offered.filter_map(|step| Loss::of(report, step)).collect()
    };
    let none_lost = "none lost in any launch, in the half second in which a worker joins and in that in which it leaves, at 80 % of what one can do";
    let typically = "no longer in the launch in the middle, joining and leaving";
    let (rtc, pipeline) = (published::RECONFIGURATION_RTC * 1e6, published::RECONFIGURATION_PIPELINE * 1e6);
    let milliseconds = published::LATENCY_RTC * 1e3;
    vec![
        claim("5.2.5, figure 5.7", "Run-to-completion gets another core", "about 400 ms").by(
            typically,
            " us",
            &took("rtc"),
            |us| us <= rtc,
        ),
        claim("5.2.5, figure 5.7", "The longest latency meanwhile, run-to-completion", "about 100 ms").by(
            "no longer in any launch, joining and leaving",
            " ms",
            &longest,
            |ms| ms <= milliseconds,
        ),
        claim("5.2.5, figure 5.8", "A pipeline gets another core", "about 130 us").by(
            typically,
            " us",
            &took("pipeline"),
            |us| us <= pipeline,
        ),
        claim(
            "5.2.5, figure 5.8",
            "Nothing is seen of it in a pipeline's throughput",
            "no appreciable change",
        )
        .by_losses(none_lost, " packets lost", &lost("pipeline"), 0.0),
        claim("5.2.5, figure 5.8", "Nothing is seen of it in a pipeline's latency", "no appreciable change")
            .by(
                format!(
                    "the 99th percentile at most {APPRECIABLE} times what it was in the half second before, in the launch in the middle"
                ),
                " times",
                &change("pipeline"),
                |times| times <= APPRECIABLE,
            ),
        claim(
            "",
            "Nothing is seen of it in run-to-completion's throughput",
            "a sharp drop: the port is stopped",
        )
        .by_losses(none_lost, " packets lost", &lost("rtc"), 0.0),
    ]
}

fn moves(report: &Report) -> Vec<Claim> {
    // With shards 0 nothing moves.
    let moving = |result: &&Measured| result.number("shards").is_some_and(|shards| shards > 0);
    let phases = |name| report.all(name, &[]).filter(moving);
    let sums = |name| -> Vec<f64> { phases(name).map(|result| result.median).collect() };
    let none = |packets: f64| packets <= 0.0;
    let mut in_order = claim("", "No packet overtakes another while shards move", "-").by(
        "none in any phase, whatever the machine does; it is excused only where it held a worker up until the giver's patience ended (moves_hurried)",
        " packets a phase",
        &sums("packets_reordered"),
        none,
    );
    in_order.stands = phases("packets_reordered").filter(|phase| !none(phase.median)).any(|phase| {
        let params: Vec<_> = phase.params.clone().into_iter().collect();
        report.median("moves_hurried", &params).is_none_or(|hurried| hurried <= 0.0)
    });
    vec![
        in_order,
        claim("", "No packet is lost inside while shards move", "-").by(
            "none in any phase; what finds a receive ring full isn't counted",
            " packets a phase",
            &sums("packets_lost_inside"),
            none,
        ),
    ]
}

#[cfg(test)]
mod tests;

//! Results, added up.

use crate::calls::Calls;
use crate::quality::{Qualities, Quality};
use crate::reading::Totals;
use crate::report::{
    ApplicationLine, FlowLine, MessageLine, NameLine, ProtocolLine, Report, SubscriberLine, Throughput,
    Volume,
};
use dpi::classify::Text;
use dpi::decode::Decoded;
use dpi::kpi::flow::Measures;
use dpi::signatures::ApplicationId;
use dpi::track::{Flow, Summary};
use dpi::{Category, Event, Inspector, Knowledge, Protocol, Verdict};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use tables::Nanos;

/// Flows, subscribers and names that are listed at most; beyond, only their sums are kept.
pub const MOST: usize = 1_000_000;

/// What is listed one by one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Lists {
    /// Flows.
    pub flows: bool,
    /// What was decoded of each.
    pub messages: bool,
}

/// Adds up what an inspector tells.
#[derive(Clone, Debug)]
pub struct Survey {
    knowledge: Arc<Knowledge>,
    /// What messages of a flow said, until it ends.
    said: HashMap<Flow, Said>,
    protocols: HashMap<Option<Protocol>, Volume>,
    applications: HashMap<Option<u16>, Application>,
    subscribers: HashMap<IpAddr, Subscriber>,
    names: HashMap<String, Volume>,
    qualities: Qualities,
    calls: Calls,
    flows: Vec<FlowLine>,
    lists: Lists,
    /// Messages that are listed.
    messages: usize,
    /// Flows, subscribers, names and messages that were not listed.
    beyond: u64,
    total: Volume,
}

#[derive(Clone, Debug, Default)]
struct Said {
    host: String,
    agent: String,
    messages: Vec<MessageLine>,
    measures: Option<Box<Measures>>,
}

#[derive(Clone, Debug, Default)]
struct Application {
    volume: Volume,
    span: Span,
}

#[derive(Clone, Debug, Default)]
struct Subscriber {
    flows: u64,
    packets: [u64; 2],
    octets: [u64; 2],
    applications: HashMap<u16, u64>,
    span: Span,
    /// Octets of the best second.
    best: u64,
}

/// From the first packet to the last one.
#[derive(Clone, Copy, Debug, Default)]
struct Span(Option<(Nanos, Nanos)>);

impl Span {
    fn add(&mut self, summary: &Summary) {
        let (first, last) = self.0.unwrap_or((summary.first, summary.last));
        self.0 = Some((first.min(summary.first), last.max(summary.last)));
    }

    /// With so many octets in all, and so many in the best second; less than a second counts as one.
    fn throughput(self, octets: u64, best: u64) -> Throughput {
        let nanos = self.0.map_or(0, |(first, last)| last.0.saturating_sub(first.0)).max(Nanos::SECOND);
        let mean = u128::from(octets) * 8 * u128::from(Nanos::SECOND) / u128::from(nanos);
        Throughput { bits_per_second: mean as u64, best_bits_per_second: 8 * best }
    }
}

fn text<const N: usize>(text: &Text<N>) -> String {
    String::from_utf8_lossy(text.bytes()).into_owned()
}

fn seconds(at: Nanos) -> f64 {
    at.0 as f64 / 1e9
}

impl Survey {
    /// Of what was found with this knowledge.
    pub fn new(knowledge: Arc<Knowledge>, lists: Lists) -> Self {
        Self {
            knowledge,
            said: HashMap::new(),
            protocols: HashMap::new(),
            applications: HashMap::new(),
            subscribers: HashMap::new(),
            names: HashMap::new(),
            qualities: Qualities::default(),
            calls: Calls::default(),
            flows: Vec::new(),
            lists,
            messages: 0,
            beyond: 0,
            total: Volume::default(),
        }
    }

    /// One more result.
    pub fn take(&mut self, event: Event) {
        match event {
            Event::Found { flow, sheet } => {
                if self.said.len() < MOST {
                    let said = self.said.entry(flow).or_default();
                    if said.host.is_empty() {
                        said.host = text(&sheet.host);
                    }
                    if said.agent.is_empty() {
                        said.agent = text(&sheet.agent);
                    }
                }
            }
            Event::Decoded { flow, at, decoded } => self.decoded(flow, at, *decoded),
            Event::Measured { flow, measures, subscriber_best } => {
                if self.said.len() < MOST {
                    self.said.entry(flow).or_default().measures = Some(measures);
                }
                if let Some(subscriber) = self.subscriber(flow.ends.subscriber) {
                    subscriber.best = subscriber.best.max(subscriber_best);
                }
            }
            Event::Classified { .. } => {}
            Event::Ended { flow, verdict, summary, .. } => {
                let said = self.said.remove(&flow).unwrap_or_default();
                let measures = said.measures.as_deref().copied();
                self.add(&flow, &verdict, &summary, said, measures.as_ref());
            }
        }
    }

    fn decoded(&mut self, flow: Flow, at: Nanos, decoded: Decoded) {
        if let Decoded::Sip(sip) = &decoded {
            self.calls.take(sip, seconds(at));
        }
        if self.lists.messages {
            if self.messages < MOST && self.said.len() < MOST {
                self.messages += 1;
                self.said.entry(flow).or_default().messages.push(MessageLine { at: seconds(at), decoded });
            } else {
                self.beyond += 1;
            }
        }
    }

    /// `None`: there are too many.
    fn subscriber(&mut self, address: IpAddr) -> Option<&mut Subscriber> {
        if self.subscribers.len() >= MOST && !self.subscribers.contains_key(&address) {
            self.beyond += 1;
            return None;
        }
        Some(self.subscribers.entry(address).or_default())
    }

    fn add(
        &mut self,
        flow: &Flow,
        verdict: &Verdict,
        summary: &Summary,
        said: Said,
        measures: Option<&Measures>,
    ) {
        let volume =
            Volume { flows: 1, packets: summary.packets.iter().sum(), octets: summary.octets.iter().sum() };
        self.total.add(volume);
        self.protocols.entry(verdict.protocol).or_default().add(volume);
        let application = verdict.application.map(ApplicationId::number);
        let sum = self.applications.entry(application).or_default();
        sum.volume.add(volume);
        sum.span.add(summary);
        self.add_subscriber(flow, application, summary);
        if !said.host.is_empty() {
            if self.names.len() < MOST || self.names.contains_key(&said.host) {
                self.names.entry(said.host.clone()).or_default().add(volume);
            } else {
                self.beyond += 1;
            }
        }
        let category = verdict.application.map(|id| self.knowledge.bundle.application(id).category);
        let category: Option<Category> = category.or(verdict.protocol.map(Protocol::category));
        let quality = measures.map(|it| Quality::of(it, verdict, category, summary.last));
        if let Some(quality) = &quality {
            self.qualities.add(quality);
            self.calls.hear(&flow.ends, quality, seconds(summary.last));
        }
        if self.lists.flows {
            if self.flows.len() < MOST {
                let mut line = FlowLine::new(flow, verdict, summary, said.host, said.agent, &self.knowledge);
                line.quality = quality;
                line.messages = said.messages;
                self.flows.push(line);
            } else {
                self.beyond += 1;
            }
        }
    }

    fn add_subscriber(&mut self, flow: &Flow, application: Option<u16>, summary: &Summary) {
        let Some(subscriber) = self.subscriber(flow.ends.subscriber) else { return };
        subscriber.flows += 1;
        for way in 0..2 {
            subscriber.packets[way] += summary.packets[way];
            subscriber.octets[way] += summary.octets[way];
        }
        subscriber.span.add(summary);
        if let Some(application) = application {
            *subscriber.applications.entry(application).or_default() += summary.octets.iter().sum::<u64>();
        }
    }

    /// All of it so far, largest first, with flows that go on, but without single flows.
    pub fn so_far(&mut self, totals: Totals, inspector: &Inspector) -> Report {
        // What is listed one by one would be copied for nothing.
        let (flows, said) = (std::mem::take(&mut self.flows), std::mem::take(&mut self.said));
        let lists = std::mem::take(&mut self.lists);
        let mut copy = self.clone();
        for (flow, verdict, summary, measures) in inspector.going_on() {
            let host = said.get(&flow).map(|it| it.host.clone()).unwrap_or_default();
            copy.add(&flow, &verdict, &summary, Said { host, ..Said::default() }, measures);
        }
        (self.flows, self.said, self.lists) = (flows, said, lists);
        copy.report(totals, inspector)
    }

    /// All of it, largest first. The inspector is the one that has told it.
    pub fn report(self, totals: Totals, inspector: &Inspector) -> Report {
        let share = |volume: Volume| volume.octets as f64 / self.total.octets.max(1) as f64;
        let application = |number: u16| self.knowledge.bundle.application(ApplicationId::from_number(number));
        // The last second is over, too.
        let end = Nanos(totals.nanos).plus(2 * Nanos::SECOND);
        let protocols = self.protocols.into_iter().map(|(protocol, volume)| ProtocolLine {
            protocol: protocol.map_or("unknown", Protocol::name),
            category: protocol.map_or("-", |it| it.category().name()),
            volume,
            share: share(volume),
        });
        let applications = self.applications.into_iter().map(|(number, sum)| {
            let application = number.map(application);
            let best = inspector.rate_of(number.map(ApplicationId::from_number)).best(end);
            ApplicationLine {
                application: application.map_or("unknown", |it| &it.name).to_owned(),
                category: application.map_or("-", |it| it.category.name()),
                volume: sum.volume,
                share: share(sum.volume),
                throughput: sum.span.throughput(sum.volume.octets, best),
            }
        });
        let subscribers = self.subscribers.into_iter().map(|(subscriber, it)| {
            let Subscriber {
                flows,
                packets: [packets_up, packets_down],
                octets: [octets_up, octets_down],
                span,
                best,
                ..
            } = it;
            let most = it.applications.into_iter().max_by_key(|(number, octets)| (*octets, *number));
            let most = most.map(|(number, _)| application(number).name.to_string());
            let throughput = span.throughput(octets_up + octets_down, best);
            SubscriberLine {
                subscriber,
                flows,
                packets_up,
                packets_down,
                octets_up,
                octets_down,
                most,
                throughput,
            }
        });
        let names = self.names.into_iter().map(|(name, volume)| NameLine { name, volume });
        let mut flows = self.flows;
        flows.sort_by(|a, b| a.began.total_cmp(&b.began));
        for (number, line) in (1..).zip(&mut flows) {
            line.flow = number;
        }
        Report {
            signatures: self.knowledge.bundle.version().to_owned(),
            totals,
            total: self.total,
            protocols: largest(protocols, |it| (it.volume.octets, it.protocol.to_owned())),
            applications: largest(applications, |it| (it.volume.octets, it.application.clone())),
            subscribers: largest(subscribers, |it| (it.octets_up + it.octets_down, it.subscriber)),
            names: largest(names, |it| (it.volume.octets, it.name.clone())),
            kpis: self.qualities.lines(),
            calls: self.calls.lines(),
            flows,
            lists: self.lists,
            port: None,
            beyond: self.beyond + self.calls.beyond,
        }
    }
}

/// Lines, the largest first; of equal ones, by name.
fn largest<T, N: Ord>(lines: impl Iterator<Item = T>, key: impl Fn(&T) -> (u64, N)) -> Vec<T> {
    let mut lines: Vec<T> = lines.collect();
    lines.sort_by_cached_key(|line| {
        let (octets, name) = key(line);
        (Reverse(octets), name)
    });
    lines
}

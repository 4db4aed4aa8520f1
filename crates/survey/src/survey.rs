//! Results, added up.

use crate::reading::Totals;
use crate::report::{ApplicationLine, FlowLine, NameLine, ProtocolLine, Report, SubscriberLine, Volume};
use dpi::classify::Text;
use dpi::signatures::ApplicationId;
use dpi::track::{Flow, Summary};
use dpi::{Event, Knowledge, Protocol, Verdict};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Flows, subscribers and names that are listed at most; beyond, only their sums are kept.
pub const MOST: usize = 1_000_000;

/// Adds up what an inspector tells.
#[derive(Debug)]
pub struct Survey {
    knowledge: Arc<Knowledge>,
    /// What messages of a flow said, until it ends.
    said: HashMap<Flow, Said>,
    protocols: HashMap<Option<Protocol>, Volume>,
    applications: HashMap<Option<u16>, Volume>,
    subscribers: HashMap<IpAddr, Subscriber>,
    names: HashMap<String, Volume>,
    flows: Vec<FlowLine>,
    lists_flows: bool,
    /// Flows, subscribers and names that were not listed.
    beyond: u64,
    total: Volume,
}

#[derive(Debug, Default)]
struct Said {
    host: String,
    agent: String,
}

#[derive(Debug, Default)]
struct Subscriber {
    flows: u64,
    packets: [u64; 2],
    octets: [u64; 2],
    applications: HashMap<u16, u64>,
}

fn text<const N: usize>(text: &Text<N>) -> String {
    String::from_utf8_lossy(text.bytes()).into_owned()
}

impl Survey {
    /// Of what was found with this knowledge. `lists_flows`: each flow gets a line.
    pub fn new(knowledge: Arc<Knowledge>, lists_flows: bool) -> Self {
        Self {
            knowledge,
            said: HashMap::new(),
            protocols: HashMap::new(),
            applications: HashMap::new(),
            subscribers: HashMap::new(),
            names: HashMap::new(),
            flows: Vec::new(),
            lists_flows,
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
            Event::Classified { .. } | Event::Decoded { .. } | Event::Measured { .. } => {}
            Event::Ended { flow, verdict, summary, .. } => self.add(&flow, &verdict, &summary),
        }
    }

    fn add(&mut self, flow: &Flow, verdict: &Verdict, summary: &Summary) {
        let said = self.said.remove(flow).unwrap_or_default();
        let volume =
            Volume { flows: 1, packets: summary.packets.iter().sum(), octets: summary.octets.iter().sum() };
        self.total.add(volume);
        self.protocols.entry(verdict.protocol).or_default().add(volume);
        let application = verdict.application.map(ApplicationId::number);
        self.applications.entry(application).or_default().add(volume);
        self.add_subscriber(flow, application, summary);
        if !said.host.is_empty() {
            if self.names.len() < MOST || self.names.contains_key(&said.host) {
                self.names.entry(said.host.clone()).or_default().add(volume);
            } else {
                self.beyond += 1;
            }
        }
        if self.lists_flows {
            if self.flows.len() < MOST {
                let line = FlowLine::new(flow, verdict, summary, said.host, said.agent, &self.knowledge);
                self.flows.push(line);
            } else {
                self.beyond += 1;
            }
        }
    }

    fn add_subscriber(&mut self, flow: &Flow, application: Option<u16>, summary: &Summary) {
        let address = flow.ends.subscriber;
        if self.subscribers.len() >= MOST && !self.subscribers.contains_key(&address) {
            self.beyond += 1;
            return;
        }
        let subscriber = self.subscribers.entry(address).or_default();
        subscriber.flows += 1;
        for way in 0..2 {
            subscriber.packets[way] += summary.packets[way];
            subscriber.octets[way] += summary.octets[way];
        }
        if let Some(application) = application {
            *subscriber.applications.entry(application).or_default() += summary.octets.iter().sum::<u64>();
        }
    }

    /// All of it, largest first.
    pub fn report(self, totals: Totals) -> Report {
        let share = |volume: Volume| volume.octets as f64 / self.total.octets.max(1) as f64;
        let application = |number: u16| self.knowledge.bundle.application(ApplicationId::from_number(number));
        let protocols = self.protocols.into_iter().map(|(protocol, volume)| ProtocolLine {
            protocol: protocol.map_or("unknown", Protocol::name),
            category: protocol.map_or("-", |it| it.category().name()),
            volume,
            share: share(volume),
        });
        let applications = self.applications.into_iter().map(|(number, volume)| {
            let application = number.map(application);
            ApplicationLine {
                application: application.map_or("unknown", |it| &it.name).to_owned(),
                category: application.map_or("-", |it| it.category.name()),
                volume,
                share: share(volume),
            }
        });
        let subscribers = self.subscribers.into_iter().map(|(subscriber, it)| {
            let Subscriber {
                flows,
                packets: [packets_up, packets_down],
                octets: [octets_up, octets_down],
                ..
            } = it;
            let most = it.applications.into_iter().max_by_key(|(number, octets)| (*octets, *number));
            let most = most.map(|(number, _)| application(number).name.to_string());
            SubscriberLine { subscriber, flows, packets_up, packets_down, octets_up, octets_down, most }
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
            flows,
            beyond: self.beyond,
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

//! The log of bindings: who had which public ports at which time, as lines of JSON in a [journal](super::journal).

use super::journal::{Journal, Lines, line};
use datapath::nat::{Plan, Protocol, Told};
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Lines that wait to be written, at most.
const QUEUE: usize = 1 << 16;

/// A line.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line<'a> {
    BlockAllocated(Block<'a>),
    BlockReleased(Block<'a>),
    MappingCreated(Mapping<'a>),
    MappingEnded(Mapping<'a>),
}

#[derive(Serialize)]
struct Block<'a> {
    pool: &'a str,
    ue: Ipv4Addr,
    public: Ipv4Addr,
    first_port: u16,
    last_port: u16,
}

#[derive(Serialize)]
struct Mapping<'a> {
    pool: &'a str,
    protocol: &'static str,
    ue: SocketAddrV4,
    public: SocketAddrV4,
}

/// The lines that events make.
pub(super) struct BindingLines;

/// An event, and the plan in which its pool has a place: the one that the worker had, or one after it.
pub(super) type Named = (Arc<Plan>, Told);

/// See the module's documentation.
pub(super) type Bindings = Journal<BindingLines>;

/// Opens the log.
pub(super) fn open(path: &Path) -> std::io::Result<Bindings> {
    Journal::open("nat-log", path, None, QUEUE, BindingLines)
}

impl Lines for BindingLines {
    type Entry = Named;

    fn count(_: &Named) -> u64 {
        1
    }

    fn write(&self, time: SystemTime, (plan, told): &Named, text: &mut Vec<u8>) {
        let name = |pool: u8| plan.names().nth(usize::from(pool)).unwrap_or_default();
        let mapping = |pool, protocol: Protocol, ue, public| Mapping {
            pool: name(pool),
            protocol: protocol.label(),
            ue,
            public,
        };
        let event = match *told {
            Told::Block { pool, taken, inside, outside, ports: (first_port, last_port) } => {
                let block = Block { pool: name(pool), ue: inside, public: outside, first_port, last_port };
                if taken { Line::BlockAllocated(block) } else { Line::BlockReleased(block) }
            }
            Told::Mapped { pool, protocol, inside, outside } => {
                Line::MappingCreated(mapping(pool, protocol, inside, outside))
            }
            Told::Unmapped { pool, protocol, inside, outside } => {
                Line::MappingEnded(mapping(pool, protocol, inside, outside))
            }
        };
        line(time, event, text);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::journal::LOOK;
    use super::*;
    use datapath::nat::Settings;
    use std::time::{Duration, Instant};

    fn named(told: Told) -> Named {
        let outside = vec!["203.0.113.128/26".parse().unwrap()];
        let pool = Settings::new("internet", vec!["10.45.0.0/16".parse().unwrap()], outside);
        (Arc::new(Plan::new(&[pool], &[], &[]).unwrap()), told)
    }

    fn block(taken: bool) -> Named {
        named(Told::Block {
            pool: 0,
            taken,
            inside: [10, 45, 0, 1].into(),
            outside: [203, 0, 113, 128].into(),
            ports: (1024, 1279),
        })
    }

    fn lines(path: &Path) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn lines_are_json_and_survive_rotation() {
        let directory = std::env::temp_dir().join(format!("millrace-nat-log-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (path, rotated) = (directory.join("nat.jsonl"), directory.join("nat.jsonl.1"));
        let log = open(&path).unwrap();
        log.tell(block(true));
        let endpoint = |a: [u8; 4], port| SocketAddrV4::new(a.into(), port);
        let (inside, outside) = (endpoint([10, 45, 0, 1], 4000), endpoint([203, 0, 113, 128], 1030));
        log.tell(named(Told::Mapped { pool: 0, protocol: Protocol::Tcp, inside, outside }));
        while std::fs::metadata(&path).unwrap().len() < 200 {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::rename(&path, &rotated).unwrap();
        std::thread::sleep(LOOK + Duration::from_millis(50));
        log.tell(block(false));
        drop(log);
        let (first, second) = (lines(&rotated), lines(&path));
        assert_eq!((first.len(), second.len()), (2, 1));
        assert_eq!(
            (&first[0]["event"], &second[0]["event"]),
            (&"block-allocated".into(), &"block-released".into())
        );
        let mut expected = serde_json::json!({
            "event": "block-allocated", "pool": "internet", "ue": "10.45.0.1", "public": "203.0.113.128",
            "first_port": 1024, "last_port": 1279
        });
        expected["time"] = first[0]["time"].clone();
        assert_eq!(first[0], expected);
        assert_eq!((&first[1]["ue"], &first[1]["protocol"]), (&"10.45.0.1:4000".into(), &"tcp".into()));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_full_disk_costs_lines_and_nothing_else() {
        let log = open(Path::new("/dev/full")).unwrap();
        for _ in 0..10 {
            log.tell(block(true));
        }
        let begun = Instant::now();
        while log.lost() < 10 {
            assert!(begun.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

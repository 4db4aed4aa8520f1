//! `lpm4` and `lpm6`: which route contains this address?

use super::routes::{self, Random};
use super::{
    Contest, LookupConfig, LookupError, MODES, Own, inserted, note_pages, on_device, peers, published, tell,
};
use crate::devices::Gpus;
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use accel::task::{Batch, Misfit};
use std::net::{Ipv4Addr, Ipv6Addr};
use tables::clock::Tsc;
use tables::image::Image;
use tables::lpm::{Address, Lpm};
use tables::{Dir24, Lookup, Lpm4, Lpm6, LpmError, Processor};

fn refused(error: LpmError) -> LookupError {
    LookupError::Table(error.to_string())
}

/// A table of all routes, and how many were added and removed a second.
fn filled<A: Address, const ROOT: u8>(
    routes: &[(A, u8, u16)],
    params: &[(&'static str, Param)],
    report: &mut Report,
) -> Result<Lpm<A, ROOT>, LookupError> {
    let mut table = Lpm::new(2 * routes.len());
    let rate = inserted(routes.len(), || {
        routes.iter().try_for_each(|(prefix, len, value)| {
            table.insert(*prefix, *len, *value).map(|_| ()).map_err(refused)
        })
    })?;
    report.results.push(Measured::of("inserts_per_second", "1/s", params, &[rate]));
    // Every tenth goes and comes back, one after the other, while all others are there.
    let some: Vec<_> = routes.iter().step_by(10).collect();
    let rate = inserted(some.len(), || {
        some.iter().for_each(|(prefix, len, _)| {
            table.remove(*prefix, *len);
        });
        Ok(())
    })?;
    report.results.push(Measured::of("removes_per_second", "1/s", params, &[rate]));
    for (prefix, len, value) in some {
        table.insert(*prefix, *len, *value).map_err(refused)?;
    }
    let bytes = [table.memory() as f64 / routes.len() as f64];
    report.results.push(Measured::of("bytes_per_entry", "bytes", params, &bytes));
    Ok(table)
}

/// Which addresses are looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    /// Of a random route, one of its addresses.
    Routed,
    /// Any, most of which have no route.
    Uniform,
}

impl Asked {
    const ALL: [Self; 2] = [Self::Routed, Self::Uniform];

    const fn name(self) -> &'static str {
        match self {
            Self::Routed => "routed",
            Self::Uniform => "uniform",
        }
    }
}

/// An address below a route.
trait Below: Address {
    fn below(self, len: u8, random: &mut Random) -> Self;
    /// Adds an address to a batch for a device: its words, the first octet in the highest bits.
    fn push(batch: &mut Batch, address: &Self) -> Result<(), Misfit>;
}

impl Below for Ipv4Addr {
    fn below(self, len: u8, random: &mut Random) -> Self {
        let host = u32::MAX.checked_shr(len.into()).unwrap_or(0);
        Self::from_bits(self.to_bits() | random.next() as u32 & host)
    }

    fn push(batch: &mut Batch, address: &Self) -> Result<(), Misfit> {
        batch.push_key(&[address.to_bits()])
    }
}

impl Below for Ipv6Addr {
    fn below(self, len: u8, random: &mut Random) -> Self {
        let host = u128::MAX.checked_shr(len.into()).unwrap_or(0);
        let any = u128::from(random.next()) << 64 | u128::from(random.next());
        Self::from_bits(self.to_bits() | any & host)
    }

    fn push(batch: &mut Batch, address: &Self) -> Result<(), Misfit> {
        let bits = address.to_bits();
        batch.push_key(&[96, 64, 32, 0].map(|from| (bits >> from) as u32))
    }
}

fn addresses<A: Below>(routes: &[(A, u8, u16)], asked: Asked, count: usize, random: &mut Random) -> Vec<A> {
    let mut one = || {
        let (prefix, len, _) = *routes.get(random.below(routes.len() as u64) as usize)?;
        Some(match asked {
            Asked::Routed => prefix.below(len, random),
            // Unicast space of IPv6 has three bits in common, and nothing else.
            Asked::Uniform if A::BITS == 128 => prefix.masked(3).below(3, random),
            Asked::Uniform => prefix.masked(0).below(0, random),
        })
    };
    (0..count).filter_map(|_| one()).collect()
}

/// All engines of a contest, for each kind of addresses.
fn measure<A: Below>(
    config: &LookupConfig,
    routes: &[(A, u8, u16)],
    contest: &mut Contest<'_, A>,
    oracle: &dyn Fn(&A) -> Option<u32>,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<(), LookupError> {
    let mut random = Random::new(42);
    for asked in Asked::ALL {
        tell(progress, report, &format!("{} routes, {} addresses", routes.len(), asked.name()));
        let keys = addresses(routes, asked, config.lookups, &mut random);
        let expected: Vec<_> = keys.iter().map(oracle).collect();
        contest.verify(&keys, &expected)?;
        for round in 0..=config.runs {
            let keys = addresses(routes, asked, config.lookups, &mut random);
            contest.round(&keys, round > 0);
        }
        let size = [
            ("entries", (routes.len() as u64).into()),
            ("device", "cpu".into()),
            ("addresses", asked.name().into()),
        ];
        contest.report(report, &size);
    }
    Ok(())
}

/// A table on a GPU, for each kind of addresses.
fn on_gpus<A: Below>(
    gpus: &mut Gpus<'_>,
    routes: &[(A, u8, u16)],
    (name, table): (&'static str, &dyn Image),
    oracle: &dyn Fn(&A) -> Option<u32>,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<(), LookupError> {
    let mut random = Random::new(43);
    for asked in Asked::ALL {
        let mut keys = |count| {
            let keys = addresses(routes, asked, count, &mut random);
            let found = keys.iter().map(oracle).collect();
            (keys, found)
        };
        let params = [
            ("addresses", asked.name().into()),
            ("entries", (routes.len() as u64).into()),
            ("table", name.into()),
        ];
        on_device::measure(gpus, table, A::push, &mut keys, &params, report, progress)?;
    }
    gpus.note(report);
    Ok(())
}

fn own(table: &'static str, processor: Processor) -> Vec<(&'static str, Param)> {
    vec![("engine", "millrace".into()), ("table", table.into()), ("processor", processor.name().into())]
}

/// What filling took, of the peers that were filled route by route.
fn enter<'e, A: 'e>(
    contest: &mut Contest<'e, A>,
    peers: Vec<peers::Routed<A>>,
    size: &[(&'static str, Param)],
    count: usize,
    report: &mut Report,
) {
    for peers::Routed { engine, params, filling } in peers {
        if let Some(time) = filling {
            let rate = [count as f64 / time];
            let params = [size, &params].concat();
            report.results.push(Measured::of("inserts_per_second", "1/s", &params, &rate));
        }
        contest.add(engine, &MODES, params);
    }
}

/// `lpm4`.
pub fn run4(config: &LookupConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, LookupError> {
    let mut report = Report::new("lpm4", &clock);
    let peers = peers::start(&mut report)?;
    progress.tell("making routes");
    let routes = routes::ipv4(config.routes4, 1);
    let size: [(&'static str, Param); 2] =
        [("entries", (routes.len() as u64).into()), ("device", "cpu".into())];
    let params =
        |table: &'static str| [&size[..], &[("engine", "millrace".into()), ("table", table.into())]].concat();
    tell(progress, &report, "filling tables");
    let trie: Lpm4 = filled(&routes, &params("trie"), &mut report)?;
    let dir24: Vec<(Dir24, Processor)> = Processor::here()
        .map(|processor| (Dir24::new(2 * routes.len()).with_processor(processor), processor))
        .collect();
    let mut first = Vec::new();
    for (at, (mut table, processor)) in dir24.into_iter().enumerate() {
        table = if at == 0 {
            filled::<_, 24>(&routes, &params("dir-24-8"), &mut report)?.with_processor(processor)
        } else {
            first
                .first()
                .map_or(table, |(first, _): &(Dir24, Processor)| first.clone().with_processor(processor))
        };
        first.push((table, processor));
    }
    tell(progress, &report, "filling the peers' tables");
    let routers = peers::routers4(peers.as_ref(), &routes, &mut report)?;
    note_pages(&mut report, "all tables");
    let mut contest = Contest::new(clock);
    contest.add(Box::new(Own::new(&trie)), &MODES, own("trie", Processor::Any));
    for (table, processor) in &first {
        contest.add(Box::new(Own::new(table)), &MODES, own("dir-24-8", *processor));
    }
    enter(&mut contest, routers, &size, routes.len(), &mut report);
    let oracle = |address: &Ipv4Addr| trie.lookup(address).map(u32::from);
    measure(config, &routes, &mut contest, &oracle, &mut report, progress)?;
    if let Some((table, _)) = first.last() {
        on_gpus(
            &mut Gpus::look(&config.gpus, clock),
            &routes,
            ("dir-24-8", table),
            &oracle,
            &mut report,
            progress,
        )?;
    }
    report.notes.push(format!(
        "one core; the seed's text has {:.0} M/s with three cores and its integrated GPU, and about {:.0} M/s with one core; I/O of {} TSC cycles a packet as there",
        published::LPM4_INTEGRATED / 1e6,
        published::LPM4_CORE / 1e6,
        published::IO_CYCLES
    ));
    Ok(report)
}

/// `lpm6`.
pub fn run6(config: &LookupConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, LookupError> {
    let mut report = Report::new("lpm6", &clock);
    let peers = peers::start(&mut report)?;
    progress.tell("making routes");
    let routes = routes::ipv6(config.routes6, 1);
    let size: [(&'static str, Param); 2] =
        [("entries", (routes.len() as u64).into()), ("device", "cpu".into())];
    let params = [&size[..], &[("engine", "millrace".into())]].concat();
    tell(progress, &report, "filling tables");
    let mut table: Lpm6 = filled(&routes, &params, &mut report)?;
    let mut gpus = Gpus::look(&config.gpus, clock);
    if gpus.are_here() {
        // Where its nodes stand is written down for copies alone.
        table.track(0);
    }
    tell(progress, &report, "filling the peers' tables");
    let routers = peers::routers6(peers.as_ref(), &routes, &mut report)?;
    note_pages(&mut report, "all tables");
    let mut contest = Contest::new(clock);
    contest.add(Box::new(Own::new(&table)), &MODES, own("trie", Processor::Any));
    enter(&mut contest, routers, &size, routes.len(), &mut report);
    let oracle = |address: &Ipv6Addr| table.lookup(address).map(u32::from);
    measure(config, &routes, &mut contest, &oracle, &mut report, progress)?;
    on_gpus(&mut gpus, &routes, ("trie", &table), &oracle, &mut report, progress)?;
    report.notes.push("one core; the seed's figure 6 has no number for IPv6 in its text".into());
    Ok(report)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::devices::Effort;
    use crate::progress::Silent;

    #[test]
    fn cores_and_gpus_are_measured() {
        let gpus = Effort::of_tests();
        let config = LookupConfig {
            routes4: 2000,
            routes6: 2000,
            lookups: 500,
            runs: 2,
            gpus,
            ..LookupConfig::quick()
        };
        for (report, table) in [
            (run4(&config, Tsc::process(), &mut Silent).unwrap(), "dir-24-8"),
            (run6(&config, Tsc::process(), &mut Silent).unwrap(), "trie"),
        ] {
            for asked in Asked::ALL {
                let of = |device: &'static str| {
                    [("addresses", asked.name().into()), ("device", device.into()), ("table", table.into())]
                };
                assert_eq!(report.find("lookups_per_second", &of("cpu")).unwrap().runs, 2);
                // Launched in two ways with copies and without, and by the ring.
                assert_eq!(report.all("ratio_to_cpu", &of("cuda")).count(), 4);
                assert_eq!(report.all("ratio_to_cpu", &of("cuda-ring")).count(), 1);
            }
        }
    }
}

//! An inspector for tests.

use datapath::Places;
use datapath::inspect::{Budget, Direction, Inspection, Inspector, Payload, Verdict};
use session::applications::{Applications, Lineage};
use session::pfd::{PfdRule, Pfds};
use session::rules::Application;
use std::sync::{Arc, Mutex};
use tables::Nanos;

/// PFDs as N4 handed them out last.
pub type Published = Arc<Mutex<Arc<Pfds>>>;

/// Finds the application whose PFDs have a conversation's flow, at once; or else the one whose name begins with the first letter of its second
/// packet. What is called `upload/video` is a part of `video`.
#[derive(Debug)]
pub struct Letters {
    letters: Vec<(u8, Lineage)>,
    pfds: Published,
}

impl Letters {
    /// Who finds these, if anybody looks.
    pub fn inspection(applications: &Applications, pfds: Published) -> Option<Inspection> {
        let letter = |number| {
            let name = applications.name(number)?;
            let whole = name.iter().position(|octet| *octet == b'/').map(|at| &name[at + 1..]);
            let whole = whole.and_then(|whole| applications.known(whole));
            Some((*name.first()?, Lineage::of([Some(number), whole].into_iter().flatten())))
        };
        let letters = (0..).map(Application).map_while(letter).collect();
        let budget = Budget { packets: 10, bytes: 10_000 };
        applications
            .is_inspected()
            .then(|| Inspection::new(Self { letters, pfds }, budget, Places::new(1_000)))
    }
}

impl Inspector for Letters {
    type State = u32;
    type Room = ();

    fn room(&self, _: u64) {}

    fn step(
        &self,
        (): &mut (),
        packets: &mut u32,
        payload: &Payload<'_>,
        direction: Direction,
        _: Nanos,
    ) -> Verdict {
        *packets += 1;
        let (key, pfds) = (payload.ip.key, self.pfds.lock().unwrap());
        let (source, destination) = (
            (key.source, key.ports.map(|ports| ports.source)),
            (key.destination, key.ports.map(|ports| ports.destination)),
        );
        let (remote, local) = match direction {
            Direction::Uplink => (destination, source),
            Direction::Downlink => (source, destination),
        };
        let takes = |rule: &PfdRule| matches!(rule, PfdRule::Flow { flow, .. } if flow.takes(key.protocol.0, remote, local));
        if let Some((_, described)) = pfds.iter().find(|(_, described)| described.rules.iter().any(takes)) {
            return Verdict::Is(described.number.into());
        }
        let first = payload.bytes().first();
        match self.letters.iter().find(|(letter, _)| Some(letter) == first) {
            _ if *packets == 1 => Verdict::SoFar(Lineage::NONE),
            Some((_, lineage)) => Verdict::Is(*lineage),
            None => Verdict::None,
        }
    }
}

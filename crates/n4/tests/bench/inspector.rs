//! An inspector for tests.

use datapath::Places;
use datapath::inspect::{Budget, Direction, Inspection, Inspector, Payload, Verdict};
use session::applications::Applications;
use session::rules::Application;
use tables::Nanos;

/// Finds the application whose name begins with the first letter of a conversation's second packet.
#[derive(Debug)]
pub struct Letters(Vec<(u8, Application)>);

impl Letters {
    /// Who finds these, if anybody looks.
    pub fn inspection(applications: &Applications) -> Option<Inspection> {
        let letter = |number| Some((*applications.name(number)?.first()?, number));
        let letters = (0..).map(Application).map_while(letter).collect();
        let budget = Budget { packets: 10, bytes: 10_000 };
        applications.is_inspected().then(|| Inspection::new(Self(letters), budget, Places::new(1_000)))
    }
}

impl Inspector for Letters {
    type State = u32;

    fn step(&self, packets: &mut u32, payload: &Payload<'_>, _: Direction, _: Nanos) -> Verdict {
        *packets += 1;
        let first = payload.bytes().first();
        match self.0.iter().find(|(letter, _)| Some(letter) == first) {
            _ if *packets == 1 => Verdict::SoFar(None),
            Some((_, application)) => Verdict::Is(*application),
            None => Verdict::None,
        }
    }
}

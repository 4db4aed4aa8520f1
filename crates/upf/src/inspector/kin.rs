//! What applications are parts of: what a verdict says beside the application itself.
//!
//! Signatures say what an application is a part of. An application that has PFDs is what these say, and nothing else (TS 23.503 §6.1.2.3.2): what
//! signatures take for a part of it is none, but remains what it is, and a part of what is further out. What PFDs find is a part of all that
//! signatures say this application is a part of.

use dpi::signatures::{ApplicationId, Bundle, MAX_DEPTH};
use session::applications::Lineage;
use session::rules::Application;
use std::collections::{HashMap, HashSet};

/// What each application is a part of, as far as signatures count.
#[derive(Debug)]
pub(super) struct Kin {
    /// By the signatures' number of what they have found.
    found: Box<[Lineage]>,
    /// Of applications that have PFDs and signatures.
    described: HashMap<Application, Lineage>,
}

const _: () = assert!(Lineage::LONGEST > MAX_DEPTH, "an application and all that it is a part of");

impl Kin {
    /// Of these signatures, whose applications have these numbers in rules; those with PFDs are overridden.
    pub fn new(bundle: &Bundle, numbers: &[Application], overridden: &HashSet<Application>) -> Self {
        let outwards =
            |id: ApplicationId| std::iter::successors(Some(id), |id| bundle.application(*id).parent);
        let number = |id: ApplicationId| numbers.get(id.index()).copied();
        let counts = |application: &Application| !overridden.contains(application);
        let of = |id: ApplicationId| Lineage::of(outwards(id).filter_map(number).filter(counts));
        let is_described = |(_, application): &(_, Application)| overridden.contains(application);
        let known = bundle.applications().filter_map(|(id, _)| Some((id, number(id)?)));
        let described = known.filter(is_described).map(|(id, application)| {
            let above = of(id);
            (application, Lineage::of(std::iter::once(application).chain(above.iter())))
        });
        Self { described: described.collect(), found: bundle.applications().map(|(id, _)| of(id)).collect() }
    }

    /// What signatures have found.
    pub fn found(&self, id: Option<ApplicationId>) -> Lineage {
        id.and_then(|id| self.found.get(id.index())).copied().unwrap_or(Lineage::NONE)
    }

    /// What PFDs have found.
    pub fn described(&self, application: Application) -> Lineage {
        self.described.get(&application).copied().unwrap_or_else(|| application.into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use session::applications::Applications;

    /// Whether packets of this application are another one's, as people would say.
    fn is_part(bundle: &Bundle, id: ApplicationId, of: &str) -> bool {
        let application = bundle.application(id);
        &*application.name == of || application.parent.is_some_and(|parent| is_part(bundle, parent, of))
    }

    /// Every application against every one that it could be a part of, where some of them have PFDs, and where numbers aren't in order.
    #[test]
    fn a_lineage_is_what_a_rule_matches() {
        let bundle = Bundle::built_in();
        let mut applications = Applications::default();
        let name = |id| bundle.application(id).name.as_bytes();
        let ids: Vec<_> = bundle.applications().map(|(id, _)| id).collect();
        for id in ids.iter().rev().step_by(3) {
            applications.number(name(*id));
        }
        let numbers = applications.inspects(ids.iter().map(|id| name(*id)));
        let number = |id: ApplicationId| numbers[id.index()];
        let wholes: HashSet<_> = ids.iter().filter_map(|id| bundle.application(*id).parent).collect();
        for modulus in [2, 3, 7, usize::MAX] {
            let has_pfds = |id: ApplicationId| id.index() % modulus == 1;
            let overridden = ids.iter().filter(|id| has_pfds(**id)).map(|id| number(*id)).collect();
            let kin = Kin::new(&bundle, &numbers, &overridden);
            let (mut parts, mut apart) = (0, 0);
            for id in &ids {
                let (found, described) = (kin.found(Some(*id)), kin.described(number(*id)));
                for of in wholes.iter().chain([id]) {
                    let is_part = is_part(&bundle, *id, &bundle.application(*of).name);
                    let of_signatures = is_part && !has_pfds(*of);
                    assert_eq!(found.has(number(*of)), of_signatures, "{id:?} {of:?} {modulus}");
                    let of_pfds = of == id || (of_signatures && has_pfds(*id));
                    assert_eq!(described.has(number(*of)), of_pfds, "{id:?} {of:?} {modulus}");
                    parts += usize::from(of_signatures && of != id);
                    apart += usize::from(is_part && !of_signatures);
                }
            }
            assert!(parts > 20 && (apart > 20 || modulus > 7), "{parts} {apart}");
        }
        let unknown = applications.number(b"of nobody here");
        let kin = Kin::new(&bundle, &numbers, &HashSet::new());
        assert_eq!(kin.found(None), Lineage::NONE);
        assert_eq!(kin.described(unknown), unknown.into());
    }
}

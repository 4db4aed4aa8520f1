//! Applications: their names at SMFs (Application ID, TS 29.244 §8.2.6), and the numbers that rules and verdicts have for them here.
//!
//! **Problem.** An SMF names an application, whoever looks into packets finds one, and a packet wants to compare two numbers. Names come from two
//! sides: from whoever inspects, who knows some by himself, and from SMFs, which describe others by PFDs (§6.2.5). Both may change while sessions
//! name them.
//!
//! **Model.** A name has one number for the life of the process, and nobody else ever gets it. So a verdict that was given, or a rule that was
//! compiled, means what it meant, whatever is learnt or forgotten since. A name is *detected* as long as somebody finds it. Only such a name
//! can be given to a new rule; a rule whose application isn't detected any more, or not yet again after a restart, stays and matches
//! nothing.
//!
//! **Parts.** An application may be a part of another one, as uploads are of a service for films. A rule for the whole matches its parts, too: what packets
//! were found to be of is a [`Lineage`], the application with all that it is a part of, and a rule looks for its own among these. So parts are
//! whoever inspects' to know, as names are. Rules name one application each and say nothing of parts, so that other signatures, with other
//! parts, need no rule compiled anew; and a verdict that was given keeps the lineage that it was given with.
//!
//! ```
//! use session::applications::Applications;
//!
//! let mut applications = Applications::default();
//! assert_eq!(applications.detected(b"video"), None, "nobody inspects");
//! let numbers = applications.inspects([&b"video"[..], b"chat"]);
//! assert_eq!(applications.detected(b"video"), Some(numbers[0]));
//! assert_eq!(applications.name(numbers[1]), Some(&b"chat"[..]));
//! // New signatures don't know the one, and find another.
//! assert_eq!(applications.inspects([&b"chat"[..], b"game"])[0], numbers[1]);
//! assert_eq!(applications.detected(b"video"), None);
//! ```

use crate::rules::Application;
use std::collections::HashMap;
use std::sync::Arc;

/// The longest name, in octets.
pub const LONGEST_NAME: usize = 255;

/// What packets were found to be of: an application, and those that it is a part of, from within outwards.
///
/// ```
/// use session::applications::Lineage;
/// use session::rules::Application;
///
/// let [films, upload, chat] = [7, 8, 9].map(Application);
/// let found = Lineage::of([upload, films]);
/// assert_eq!(found.first(), Some(upload));
/// assert!(found.has(films) && found.has(upload) && !found.has(chat));
/// assert_eq!(Lineage::NONE.first(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lineage([Application; Self::LONGEST]);

impl Lineage {
    /// Applications in one, at most.
    pub const LONGEST: usize = 5;
    /// Of no application that is known.
    pub const NONE: Self = Self([Application::NOBODYS; Self::LONGEST]);

    /// Of these. What is nobody's is left out, and so are those beyond [`Self::LONGEST`].
    pub fn of(all: impl IntoIterator<Item = Application>) -> Self {
        let mut lineage = Self::NONE;
        let known = all.into_iter().filter(|application| *application != Application::NOBODYS);
        for (place, application) in lineage.0.iter_mut().zip(known) {
            *place = application;
        }
        lineage
    }

    /// The application that was found; `None`: none.
    pub fn first(&self) -> Option<Application> {
        self.iter().next()
    }

    /// Whether it is this application's, or a part of it.
    pub fn has(&self, application: Application) -> bool {
        self.iter().any(|known| known == application)
    }

    /// From within outwards.
    pub fn iter(&self) -> impl Iterator<Item = Application> + '_ {
        self.0.iter().copied().take_while(|application| *application != Application::NOBODYS)
    }
}

impl From<Application> for Lineage {
    fn from(application: Application) -> Self {
        Self::of([application])
    }
}

/// All names that there ever were in this process; see the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Applications {
    /// Somebody looks into packets.
    inspected: bool,
    /// By number.
    known: Vec<Known>,
    numbers: HashMap<Arc<[u8]>, Application>,
}

#[derive(Clone, Debug)]
struct Known {
    name: Arc<[u8]>,
    /// Whoever inspects finds it by himself.
    built_in: bool,
    /// There are PFDs for it.
    described: bool,
}

impl Known {
    const fn is_detected(&self) -> bool {
        self.built_in || self.described
    }
}

impl Applications {
    /// Somebody inspects, who finds these by himself, and from now on no others. Their numbers, in order: what a verdict has to say.
    pub fn inspects<'n>(&mut self, names: impl IntoIterator<Item = &'n [u8]>) -> Vec<Application> {
        self.inspected = true;
        self.known.iter_mut().for_each(|known| known.built_in = false);
        let enter = |name| {
            let number = self.number(name);
            if let Some(known) = self.known.get_mut(usize::from(number.0)) {
                known.built_in = true;
            }
            number
        };
        names.into_iter().map(enter).collect()
    }

    /// Whether somebody looks into packets.
    pub const fn is_inspected(&self) -> bool {
        self.inspected
    }

    /// There are PFDs for this one from now on, or no longer. Its number; [`Application::NOBODYS`]: there is no room for another name.
    pub fn describe(&mut self, name: &[u8], described: bool) -> Application {
        let number = self.number(name);
        if let Some(known) = self.known.get_mut(usize::from(number.0)) {
            known.described = described;
        }
        number
    }

    /// The number of a name that a new rule may have.
    pub fn detected(&self, name: &[u8]) -> Option<Application> {
        self.numbers.get(name).copied().filter(|number| self.is_detected(*number))
    }

    /// Whether somebody finds it, so that a rule that asks for it can match.
    pub fn is_detected(&self, application: Application) -> bool {
        self.inspected && self.known.get(usize::from(application.0)).is_some_and(Known::is_detected)
    }

    /// What it is called.
    pub fn name(&self, application: Application) -> Option<&[u8]> {
        self.known.get(usize::from(application.0)).map(|known| &*known.name)
    }

    /// The number of a name, whether it is detected or not: it gets one if it has none. [`Application::NOBODYS`]: there is no room, or it is no
    /// name.
    pub fn number(&mut self, name: &[u8]) -> Application {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = Application(u16::try_from(self.known.len()).unwrap_or(u16::MAX));
        if number == Application::NOBODYS || !is_name(name) {
            return Application::NOBODYS;
        }
        let name: Arc<[u8]> = name.into();
        self.known.push(Known { name: Arc::clone(&name), built_in: false, described: false });
        self.numbers.insert(name, number);
        number
    }

    /// The number that a name has.
    pub fn known(&self, name: &[u8]) -> Option<Application> {
        self.numbers.get(name).copied()
    }

    /// Those that have a name and that nobody finds.
    pub fn undetected(&self) -> impl Iterator<Item = &[u8]> {
        let undetected = |known: &&Known| !self.inspected || !known.is_detected();
        self.known.iter().filter(undetected).map(|known| &*known.name)
    }
}

/// Whether an application can be called so.
pub const fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.len() <= LONGEST_NAME
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number_and_is_found_by_either_side() {
        let mut applications = Applications::default();
        let early = applications.describe(b"early", true);
        assert_eq!(applications.detected(b"early"), None, "nobody inspects");
        let [video] = applications.inspects([&b"video"[..]])[..] else { panic!() };
        assert_eq!(
            (applications.detected(b"early"), applications.detected(b"video")),
            (Some(early), Some(video))
        );
        // Both find it: it is found as long as one of them does.
        assert_eq!(applications.describe(b"video", true), video);
        assert_eq!(applications.inspects([]), []);
        assert_eq!(applications.detected(b"video"), Some(video));
        assert_eq!(applications.describe(b"video", false), video);
        assert_eq!(applications.detected(b"video"), None);
        assert_eq!(applications.undetected().collect::<Vec<_>>(), [b"video"]);
        assert_eq!(
            (applications.known(b"video"), applications.name(video)),
            (Some(video), Some(&b"video"[..]))
        );
    }

    #[test]
    fn nobodys_application_is_no_part_of_anything() {
        let nobody = Application::NOBODYS;
        let found = Lineage::of([nobody, Application(3), nobody, Application(1)]);
        assert!(found.iter().eq([Application(3), Application(1)]));
        assert!(!found.has(nobody) && !Lineage::NONE.has(nobody));
        assert_eq!(Lineage::from(nobody), Lineage::NONE);
        assert!(Lineage::of((0..9).map(Application)).iter().eq((0..5).map(Application)));
    }

    #[test]
    fn there_is_room_for_so_many_names() {
        let mut applications = Applications::default();
        for name in 0..u32::from(u16::MAX) {
            assert_eq!(u32::from(applications.number(&name.to_be_bytes()).0), name);
        }
        assert_eq!(applications.describe(b"one more", true), Application::NOBODYS);
        assert_eq!(applications.known(b"one more"), None);
        assert_eq!(applications.number(&7u32.to_be_bytes()), Application(7));
        assert!(!applications.is_detected(Application::NOBODYS));
        let mut applications = Applications::default();
        assert_eq!(applications.number(&[b'x'; LONGEST_NAME + 1]), Application::NOBODYS);
        assert_eq!(applications.number(b""), Application::NOBODYS);
        assert_eq!(applications.number(&[b'x'; LONGEST_NAME]), Application(0));
    }
}

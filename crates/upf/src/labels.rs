//! What is known of flows' applications, in words.

use super::inspector;
use datapath::inspect::Finding;
use session::applications::Applications;
use session::rules::Application;
use std::sync::Arc;

/// Names that are shown to whoever has mistyped one.
const MOST_ALIKE: usize = 5;
/// What is shorter is part of too many.
const SHORTEST_PART: usize = 3;

/// Names of applications by their numbers, for any thread. Only the control thread learns new ones; a number never changes its name.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Arc<Vec<Arc<str>>>);

impl Names {
    /// Learns those that are new. Whether there were any.
    pub fn learn(&mut self, applications: &Applications) -> bool {
        let before = self.0.len();
        let next = |names: &Self| applications.name(Application(u16::try_from(names.0.len()).ok()?));
        while let Some(name) = next(self) {
            let name = String::from_utf8_lossy(name).into();
            Arc::make_mut(&mut self.0).push(name);
        }
        self.0.len() > before
    }

    /// Names that may have been meant, of applications that are wanted: at most [`MOST_ALIKE`], the likeliest first.
    pub fn like(&self, typed: &str, is_wanted: impl Fn(Application) -> bool) -> Vec<&str> {
        let typed = typed.to_lowercase();
        let names = (0..).zip(self.0.iter()).filter(|(number, _)| is_wanted(Application(*number)));
        let names: Vec<&str> = names.map(|(_, name)| &**name).collect();
        let mut alike: Vec<&str> = config::nearest(&typed, names.iter().copied()).into_iter().collect();
        let has_part = |name: &&str| typed.len() >= SHORTEST_PART && name.to_lowercase().contains(&typed);
        let parts = names.into_iter().filter(|name| has_part(name) && !alike.contains(name));
        alike.extend(parts.take(MOST_ALIKE - alike.len()).collect::<Vec<_>>());
        alike
    }

    /// What an application is called.
    pub fn of(&self, application: Application) -> Option<&str> {
        self.0.get(usize::from(application.0)).map(|name| &**name)
    }
}

/// What is known of a conversation, as it is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label<'n> {
    /// The application, or what it is taken for so far.
    pub application: Option<&'n str>,
    /// It is under question.
    pub open: bool,
    /// What that rests on, and how sure that is.
    pub by: Option<(&'static str, &'static str)>,
}

impl<'n> Label<'n> {
    pub fn of(finding: Finding, names: &'n Names) -> Self {
        let Finding { application, open, why } = finding;
        let by = application.and_then(|_| inspector::words(why));
        Self { application: application.and_then(|it| names.of(it)), open, by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datapath::inspect::Why;

    #[test]
    fn names_are_learnt_as_they_come_and_keep_their_numbers() {
        let mut applications = Applications::default();
        let mut names = Names::default();
        let [video] = applications.inspects([&b"video"[..]])[..] else { panic!() };
        assert!(names.learn(&applications) && !names.learn(&applications));
        let before = names.clone();
        let chat = applications.describe(b"ch\xfft", true);
        assert_eq!((names.of(video), names.of(chat)), (Some("video"), None));
        names.learn(&applications);
        assert_eq!((names.of(video), names.of(chat)), (Some("video"), Some("ch\u{fffd}t")));
        assert_eq!((before.of(chat), names.of(Application::NOBODYS)), (None, None));
    }

    #[test]
    fn who_slips_is_told_what_there_is() {
        let (mut applications, mut names) = (Applications::default(), Names::default());
        applications.inspects(["youtube", "youtube-upload", "video", "yo"].map(str::as_bytes));
        names.learn(&applications);
        let like = |typed: &str| names.like(typed, |application| application != Application(2));
        assert_eq!(like("YouTub"), ["youtube", "youtube-upload"]);
        assert_eq!(like("uplo"), ["youtube-upload"]);
        assert_eq!(like("vidoe"), [""; 0], "nobody finds it");
        assert_eq!(like("q"), ["yo"; 0]);
    }

    #[test]
    fn who_knows_nothing_has_no_reason() {
        let finding = Finding { application: None, open: false, why: Why(1) };
        let names = Names::default();
        let label = Label::of(finding, &names);
        assert_eq!(label, Label { application: None, open: false, by: None });
    }
}

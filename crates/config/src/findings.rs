//! What is found wrong with a file, and where.

use super::problem::{Place, Step, Wrong};
use super::report::Problem;
use super::tree::{Node, Value};

/// A path to a value: `way!["port", 0, "mtu"]`.
macro_rules! way {
    ($($step:expr),*) => { [$($crate::problem::Step::from($step)),*] };
}
pub(super) use way;

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// A file that is being examined, as it was written, and what is wrong with it so far.
pub(super) struct Check<'a> {
    pub(super) root: &'a Node,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Check<'a> {
    pub(super) const fn of(root: &'a Node) -> Self {
        Self { root, problems: Vec::new() }
    }

    pub(super) fn wrong(&mut self, path: &[Step], wrong: Wrong) {
        let place = self.root.place(path);
        self.problems.push(Problem { wrong, place, related: Vec::new() });
    }

    pub(super) fn wrong_with(&mut self, path: &[Step], wrong: Wrong, other: &[Step], what: &str) {
        let related = vec![(self.root.place(other), what.to_owned())];
        let place = self.root.place(path);
        self.problems.push(Problem { wrong, place, related });
    }

    /// The keys that somebody wrote into the table at the path.
    pub(super) fn keys(&self, path: &[Step]) -> Vec<String> {
        match self.root.get(path).map(|node| &node.value) {
            Some(Value::Table(entries)) => entries.keys().cloned().collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn missing(&mut self, wrong: Wrong) {
        self.problems.push(Problem { wrong, place: Place::TOP, related: Vec::new() });
    }
}

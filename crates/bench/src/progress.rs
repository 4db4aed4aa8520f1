//! What a benchmark says while it goes on.

use crate::chart::Figure;
use crate::report::Report;

/// Whoever waits for a benchmark, and may end it at any time: a benchmark doesn't look for that between two packets, where the look
/// would be measured too, but hands out what it has found after each point.
pub trait Progress {
    /// What is being done now.
    fn tell(&mut self, what: &str);
    /// So much of what was told last is done, of so much.
    fn part(&mut self, done: u64, of: u64);
    /// All that has been found so far.
    fn keep(&mut self, report: &Report);
    /// The picture of that, from scenarios that draw their own.
    fn draw(&mut self, _figure: Figure) {}
}

/// How often it was said how far work is.
#[cfg(test)]
#[derive(Default)]
pub struct Parts(pub u64);

#[cfg(test)]
impl Progress for Parts {
    fn tell(&mut self, _: &str) {}
    fn part(&mut self, done: u64, of: u64) {
        assert!(done <= of);
        self.0 += 1;
    }
    fn keep(&mut self, _: &Report) {}
}

/// Nobody waits.
pub struct Silent;

impl Progress for Silent {
    fn tell(&mut self, _: &str) {}
    fn part(&mut self, _: u64, _: u64) {}
    fn keep(&mut self, _: &Report) {}
}

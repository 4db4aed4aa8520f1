//! Progress on standard error: one line that is drawn again on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// The time between two lines where nothing can be drawn again.
const ELSEWHERE: Duration = Duration::from_secs(10);
/// The time between two pictures of how far work has come.
const REDRAWN: Duration = Duration::from_millis(250);
/// Nothing is said of the remaining time before so much has passed.
const ESTIMATED: Duration = Duration::from_secs(1);

/// Where progress is shown. What can't be shown is no reason to stop.
pub struct Screen {
    redraws: bool,
    /// The cursor stands behind something.
    open: bool,
    shown: Instant,
    /// What is going on, and since when.
    now: (String, Instant),
}

impl Screen {
    /// Standard error.
    pub fn new() -> Self {
        let now = Instant::now();
        Self { redraws: std::io::stderr().is_terminal(), open: false, shown: now, now: (String::new(), now) }
    }

    /// Whether it is a terminal.
    pub const fn redraws(&self) -> bool {
        self.redraws
    }

    /// A line that stays.
    pub fn line(&mut self, text: &str) {
        self.finish();
        let _ = writeln!(std::io::stderr(), "{text}");
        self.shown = Instant::now();
    }

    /// What is going on from now on.
    pub fn tell(&mut self, what: &str) {
        self.now = (what.to_owned(), Instant::now());
        self.show(Duration::ZERO, what);
    }

    /// So much of what was told last is done.
    pub fn part(&mut self, done: u64, of: u64) {
        if self.is_due(REDRAWN) {
            let (what, since) = &self.now;
            let text = format!("{what}: {}", share(done, of, since.elapsed()));
            self.show(REDRAWN, &text);
        }
    }

    /// Shows this, if it is time to.
    pub fn show(&mut self, every: Duration, text: &str) {
        if !self.is_due(every) {
            return;
        }
        if self.redraws {
            let _ = write!(std::io::stderr(), "\r{text}\x1b[K");
            let _ = std::io::stderr().flush();
            (self.open, self.shown) = (true, Instant::now());
        } else {
            self.line(text);
        }
    }

    fn is_due(&self, every: Duration) -> bool {
        self.shown.elapsed() >= if self.redraws { every } else { ELSEWHERE }
    }

    /// Leaves what was drawn last, and begins a line.
    pub fn finish(&mut self) {
        if std::mem::take(&mut self.open) {
            let _ = writeln!(std::io::stderr());
        }
    }

    /// Takes away what was drawn last.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.open) {
            clear();
        }
    }
}

/// Takes away what stands in the line, whoever drew it.
pub fn clear() {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
        let _ = std::io::stderr().flush();
    }
}

/// How much is done, and what the rest takes if it goes on as it did.
fn share(done: u64, of: u64, elapsed: Duration) -> String {
    let done = done.min(of);
    let percent = u128::from(done) * 100 / u128::from(of.max(1));
    if done == 0 || elapsed < ESTIMATED {
        return format!("{percent} %");
    }
    let seconds = (elapsed.as_secs_f64() * (of - done) as f64 / done as f64).ceil() as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{percent} %, {seconds} s left"),
        (minutes, seconds) => format!("{percent} %, {minutes} min {seconds} s left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_much_is_done_and_what_remains() {
        let after = |seconds| Duration::from_secs(seconds);
        assert_eq!(share(0, 10, after(5)), "0 %");
        assert_eq!(share(5, 10, Duration::from_millis(10)), "50 %");
        assert_eq!(share(1, 4, after(10)), "25 %, 30 s left");
        assert_eq!(share(1, 10, after(20)), "10 %, 3 min 0 s left");
        // More than was expected, or of nothing.
        assert_eq!(share(11, 10, after(5)), "100 %, 0 s left");
        assert_eq!(share(0, 0, after(5)), "0 %");
    }
}

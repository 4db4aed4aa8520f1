//! The end of a UPF that was asked to stop: the last usage reports, then the request to be released, then the workers' end.
//!
//! Packets are the first to end: what is forwarded after a session's last report nobody is charged for. Workers rest, each shard is
//! asked, each SMF told ([`n4::N4::begin_to_leave`]), all of it within `n4.last-reports`.

use super::Upf;
use n4::LastReports;
use std::time::{Duration, Instant};

/// How long workers have to serve what they have received.
const REST_WITHIN: Duration = Duration::from_secs(1);
/// How long SMFs have to answer the request to be released, and to release: two round trips. Some never do.
const RELEASE_WITHIN: Duration = Duration::from_secs(1);
/// While nothing comes.
const NAP: Duration = Duration::from_micros(200);
/// How often the log says how far it is.
const TELL: Duration = Duration::from_secs(1);

impl Upf {
    /// Takes leave of all SMFs. Comes back after `n4.last-reports` and two seconds at most; at once if that is zero.
    pub(super) fn take_leave(&mut self) {
        if self.engine.lost().is_none() && !self.config.n4.last_reports.is_zero() {
            self.rest();
            self.report_for_the_last_time();
        }
        self.n4.leave(self.clock.now());
        self.send();
        let within = RELEASE_WITHIN.min(self.config.n4.last_reports);
        self.serve_until(within, |upf| {
            upf.n4.node().outstanding() == 0 && upf.n4.node().peers().next().is_none()
        });
    }

    /// Workers take nothing from ports any more, and serve what they have.
    fn rest(&mut self) {
        self.engine.rest();
        // See [`engine::Engine::rest`].
        let until = Instant::now() + REST_WITHIN;
        for _ in 0..3 {
            let fence = self.engine.fence();
            self.engine.flush();
            self.serve_until(until.saturating_duration_since(Instant::now()), |upf| upf.engine.passed(fence));
        }
    }

    fn report_for_the_last_time(&mut self) {
        self.n4.begin_to_leave();
        let begun = Instant::now();
        let mut told = begun;
        let mut progress = self.n4.go_on_leaving();
        if progress.sessions + progress.left_out == 0 {
            return;
        }
        tracing::info!(
            sessions = progress.sessions,
            "stopping: SMFs are told the last usage of all sessions"
        );
        if progress.left_out > 0 {
            tracing::warn!(
                sessions = progress.left_out,
                "last usage is not told: their SMF does not answer heartbeats"
            );
        }
        let within = self.config.n4.last_reports;
        self.serve_until(within, |upf| {
            progress = upf.n4.go_on_leaving();
            if told.elapsed() >= TELL {
                told = Instant::now();
                let LastReports { sessions, left, .. } = progress;
                tracing::info!(sessions, left, "stopping: last usage reports");
            }
            progress.left == 0
        });
        let LastReports { sessions, left, unanswered, .. } = progress;
        let unanswered = left as u64 + unanswered;
        if unanswered > 0 {
            tracing::warn!(
                sessions,
                unanswered,
                within_seconds = within.as_secs_f64(),
                "last usage reports that no SMF has answered; n4.last-reports says how long to wait"
            );
        } else {
            let milliseconds = begun.elapsed().as_millis() as u64;
            tracing::info!(sessions, milliseconds, "SMFs have answered the last usage reports");
        }
    }

    /// Serves N4 and workers until it is done or time is up, and at least once.
    fn serve_until(&mut self, within: Duration, mut is_done: impl FnMut(&mut Self) -> bool) {
        let until = Instant::now() + within;
        loop {
            let work = self.serve();
            if is_done(self) || Instant::now() >= until || self.engine.lost().is_some() {
                // What was asked for just now goes out.
                self.give_orders();
                self.send();
                return;
            }
            if work == 0 {
                std::thread::sleep(NAP);
            }
        }
    }
}

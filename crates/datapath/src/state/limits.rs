//! What a worker refuses to exceed, and how that changes while packets flow.

use crate::Config;
use tables::RateLimiter;

/// Rate limits of the answers that a worker gives, and of what it tells control on a stranger's word or of what UEs do.
#[derive(Debug)]
pub(crate) struct Rates {
    pub echo: RateLimiter,
    pub error: RateLimiter,
    /// Error Indications that far ends of sessions here send us, and those of others.
    pub indicated: RateLimiter,
    pub indicated_by_strangers: RateLimiter,
    pub icmp: RateLimiter,
    /// Beginnings of applications' traffic.
    pub applications: RateLimiter,
    /// Answers to those who are redirected.
    pub redirects: RateLimiter,
}

impl Rates {
    pub fn new(config: &Config) -> Self {
        Self {
            echo: limiter(config.echo_rate),
            error: limiter(config.error_rate),
            indicated: limiter(config.error_rate),
            indicated_by_strangers: limiter(config.error_rate.div_ceil(10)),
            icmp: limiter(config.icmp_rate),
            applications: limiter(config.application_rate),
            redirects: limiter(config.redirect_rate),
        }
    }
}

/// So many answers a second, in bursts of a tenth of a second's worth: a flood of packets that ask for an answer never becomes
/// a flood of answers.
fn limiter(per_second: u32) -> RateLimiter {
    RateLimiter::new(per_second, (per_second / 10).max(1))
}

//! What a worker refuses to exceed, and how that changes while packets flow.

use crate::Config;
use crate::datapath::Datapath;
use io::Frame;
use tables::RateLimiter;

/// Rate limits of the answers that a worker gives, and of what it tells control on a stranger's word.
#[derive(Debug)]
pub(crate) struct Rates {
    pub echo: RateLimiter,
    pub error: RateLimiter,
    /// Error Indications that far ends of sessions here send us, and those of others.
    pub indicated: RateLimiter,
    pub indicated_by_strangers: RateLimiter,
    pub icmp: RateLimiter,
}

impl Rates {
    pub fn new(config: &Config) -> Self {
        Self {
            echo: limiter(config.echo_rate),
            error: limiter(config.error_rate),
            indicated: limiter(config.error_rate),
            indicated_by_strangers: limiter(config.error_rate.div_ceil(10)),
            icmp: limiter(config.icmp_rate),
        }
    }
}

/// So many answers a second, in bursts of a tenth of a second's worth: a flood of packets that ask for an answer never becomes
/// a flood of answers.
fn limiter(per_second: u32) -> RateLimiter {
    RateLimiter::new(per_second, (per_second / 10).max(1))
}

impl<F: Frame> Datapath<F> {
    /// Limits and rates are others from now on. Nothing goes at once that is beyond a lower one: where something new comes, two or three
    /// of the old go, so that no packet waits for the clearing of a table. What else a configuration says is for the start.
    pub(crate) fn change_limits(&mut self, new: &Config) {
        let own = &mut self.config;
        let rates = |config: &Config| (config.echo_rate, config.error_rate, config.icmp_rate);
        if rates(own) != rates(new) {
            (own.echo_rate, own.error_rate, own.icmp_rate) = rates(new);
            self.rates = Rates::new(own);
        }
        // These are looked at where they matter.
        own.buffered.resize(&new.buffered);
        own.flows_per_session = new.flows_per_session;
        own.flow_idle = new.flow_idle;
        own.new_flows_in_overload = new.new_flows_in_overload;
        own.flows = new.flows;
        self.room.set_limit(new.flows);
        self.network.neighbours.set_limit(new.neighbours);
        self.reassembly.set_limit(new.reassemblies);
        self.flows.set_limit(new.fragment_flows);
        self.nat_fragments.set_limit(new.fragment_flows);
        for shard in self.shards.iter_mut().flatten() {
            shard.flows.set_limit(new.flows);
            shard.flows.join(&mut self.supply);
            shard.check_sources(new.check_source);
        }
        if own.check_source != new.check_source {
            own.check_source = new.check_source;
            // Devices forward tunnels' packets only where their sources are not checked: each rule is looked at anew.
            self.network.generation += 1;
        }
    }
}

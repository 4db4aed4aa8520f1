//! How many workers own shards: what regulation does is logged, what `ctl scale` asks is carried out.

use super::{Backend, Upf};
use api::{Answers, CtlError, ErrorCode, Scale, ScaleStatus};
use engine::watchdog::Sight;
use engine::{Change, Engine, Model};

/// Lets workers come and go, and shards move, as the load wants it.
pub(super) fn regulate(engine: &mut Engine) {
    engine.regulate(|change| match change {
        Change::Scaled { from, to, why } => {
            tracing::info!(from, to, %why, "another number of workers owns shards")
        }
        Change::Rebalanced { shards, before, after } => {
            tracing::info!(shards, before, after, "shards move to workers with less to do");
        }
        Change::TooHeavy(heavy) => tracing::warn!(
            shard = heavy.shard.index(),
            share = heavy.share,
            "a shard is more than a worker can carry: too many subscribers, or one that is too heavy"
        ),
        Change::Sight(Sight::Stalled { worker, .. }) => {
            tracing::warn!(
                worker,
                "a worker does nothing: the kernel runs something else on its core, or it hangs"
            );
        }
        Change::Sight(Sight::Recovered { worker, .. }) => tracing::info!(worker, "a worker goes on"),
    });
}

impl Answers<Scale> for Backend {
    fn answer(&self, request: Scale) -> Result<ScaleStatus, CtlError> {
        self.ask(move |upf| handle(upf, request))
    }
}

/// Carries out a request, and tells how things are.
fn handle(upf: &mut Upf, request: Scale) -> Result<ScaleStatus, CtlError> {
    let engine = &mut upf.engine;
    if request.release {
        engine.release_scale();
    }
    if let Some(workers) = request.workers {
        let refused = |error: engine::plan::scaler::ScalerError| {
            CtlError::new(ErrorCode::BadRequest, error.to_string())
        };
        engine.scale(usize::from(workers)).map_err(refused)?;
    }
    let moves = engine.moves();
    let micros = |share| moves.pause(share) as f64 / 1_000.0;
    let owning = engine.owning();
    Ok(ScaleStatus {
        model: match upf.config.model {
            Model::RunToCompletion => "run-to-completion".into(),
            Model::Pipeline { .. } => "pipeline".into(),
        },
        workers: engine.workers() as u16,
        dispatchers: owning.start as u16,
        active: engine.active() as u16,
        asked: engine.asked_scale().map(|asked| asked as u16),
        automatic: upf.config.scaling.automatic,
        moving: moves.outstanding as u64,
        moves: moves.moves,
        shards: moves.shards,
        parked: moves.parked,
        overflowed: moves.overflowed,
        hurried: moves.hurried,
        given_up: moves.given_up,
        pause_p50_us: micros(0.5),
        pause_p99_us: micros(0.99),
        pause_max_us: micros(1.0),
    })
}

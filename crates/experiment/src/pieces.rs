//! Learnt graphs that fall into pieces.

use crate::plan::Plan;
use fedkin_core::graph::Weighted;
use fedkin_core::model::Problem;
use fedkin_data::World;
use fedkin_runtime::Live;

/// What to say of clients whose graph is not connected; nothing where all are, or where no graphs were learnt.
pub(crate) fn warning(plan: &Plan, world: &World, live: &dyn Live) -> Option<String> {
    let Problem::Graph(smooth) = &plan.problem else { return None };
    let nodes = smooth.nodes(world.schema.columns())?;
    let mut apart: Vec<(u32, u32)> = Vec::new();
    live.own_models(&mut |id, graph| {
        if let Ok(graph) = Weighted::new(nodes, graph.to_vec()) {
            let pieces = graph.components(0.0).into_iter().max().map_or(0, |last| last + 1);
            if pieces > 1 {
                apart.push((id, pieces));
            }
        }
    });
    let (first, pieces) = apart.first()?;
    Some(format!(
        "the graphs of {} of {} clients are not connected (that of {:?} is in {pieces} pieces): raise model.beta for more \
         edges, or give them more records",
        apart.len(),
        world.train.len(),
        world.federation.client_name(*first)
    ))
}

#[cfg(test)]
mod tests {
    use crate::config::Source;
    use crate::plan::Plan;
    use std::path::Path;

    /// With hardly any beta every node keeps its nearest neighbour alone; with much of it all pairs are edges.
    #[test]
    fn graphs_in_pieces_are_named() {
        let told = |beta: f64| {
            let text = format!(
                "version = 1\n[run]\nname = \"p\"\nrounds = 5\n[data]\nsource = \"synthetic.graph-signals\"\n\
                 samples = 30\n[model]\nkind = \"graph\"\nbeta = {beta}\n[algorithm]\nname = \"igl\"\n"
            );
            let source = Source { name: "pieces.toml".into(), text };
            let plan = Plan::load(&source, Path::new(""), &[], &[]).unwrap();
            let world = plan.world(0).unwrap();
            let mut stage = plan.start(&world, 0).unwrap();
            while stage.live.step().unwrap() != fedkin_runtime::Progress::Ended {}
            super::warning(&plan, &world, stage.live.as_ref())
        };
        let words = told(1e-6).unwrap();
        assert!(words.contains("not connected") && words.contains("raise model.beta"), "{words}");
        assert_eq!(told(50.0), None);
    }
}

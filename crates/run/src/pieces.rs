//! Learnt graphs that fall into pieces.

use crate::plan::Plan;
use crate::warning::Warning;
use fedkin_data::World;
use fedkin_graph::Weighted;
use fedkin_method::round::Results;

/// What to say of clients whose graph is not connected; nothing where all are, or where no graphs were learnt.
pub(crate) fn warning(plan: &Plan, world: &World, live: &dyn Results) -> Option<Warning> {
    let smooth = plan.families.first().signals()?;
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
    let &(first, pieces) = apart.first()?;
    Some(Warning::Pieces {
        clients: apart.len(),
        of: world.train.len(),
        first: world.federation.client_name(first).to_string(),
        pieces,
    })
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::registry::Registry;
    use fedkin_config::Source;
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
            let plan = Plan::load(&Registry::native(), &source, Path::new(""), &[], &[]).unwrap();
            let world = plan.world(0).unwrap();
            let mut stage = plan.start(&world, 0).unwrap();
            while stage.live.step().unwrap() != fedkin_method::round::Progress::Ended {}
            super::warning(&plan, &world, stage.live.as_ref())
        };
        let words = told(1e-6).unwrap().to_string();
        assert!(words.contains("not connected") && words.contains("raise model.beta"), "{words}");
        assert_eq!(told(50.0), None);
    }
}

//! What the smallest method has besides what a client does: one number comes in, one number goes out.

macro_rules! rest_of_a_method {
    () => {
        const NAME: &'static str = "smallest";
        const PERSONAL: &'static [&'static str] = &["client"];
        type Local = f64;
        type Memory = ();
        type Server = ();
        type Seat = ();
        type Common = ();
        type Down = ();
        type Up = f64;
        type Share = ();

        fn open(&self, _: fedkin_core::algorithm::ServerView<'_>, _: &mut fedkin_core::rng::PublicRng) {}
        fn seat(&self, _: fedkin_core::algorithm::ServerView<'_>, _: &fedkin_core::Member) {}
        fn fits(&self, (): &(), _: fedkin_core::algorithm::Now<'_>, _: &f64) -> bool {
            true
        }
        fn absorb(
            &self,
            (): &(),
            (): &mut (),
            _: fedkin_core::algorithm::Now<'_>,
            _: &fedkin_core::Member,
            _: &f64,
            _: &mut fedkin_core::algorithm::Cells,
        ) {
        }
        fn close(
            &self,
            (): &mut (),
            _: &mut fedkin_core::algorithm::Seats<'_, ()>,
            _: &fedkin_core::algorithm::Closed<'_>,
            _: &fedkin_core::algorithm::Cells,
        ) {
        }
        fn join(
            &self,
            data: &std::sync::Arc<fedkin_core::Dataset>,
            _: fedkin_core::algorithm::ServerView<'_>,
            _: &fedkin_core::Member,
        ) -> Result<f64, fedkin_core::model::Unsolved> {
            Ok(data.targets()[0])
        }
        fn personal(
            &self,
            _: &f64,
            (): &(),
            _: Ask<'_, Self>,
            out: &mut fedkin_core::algorithm::Personal<'_>,
        ) {
            out("client", &[]);
        }
    };
}

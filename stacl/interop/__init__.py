"""Other people's tools: what lets them drive our translator. Each needs its tool only when it is used."""

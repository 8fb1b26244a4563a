"""Plans for a state that is supposed: previews, simulations and their documents."""

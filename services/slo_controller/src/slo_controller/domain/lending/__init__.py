"""What may be lent of a node: batch and mid resources, by Koordinator's formulas, with every term kept."""

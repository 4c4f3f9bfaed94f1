"""What containers should ask for, by what they used: in the manner of the Vertical Pod Autoscaler's recommender."""

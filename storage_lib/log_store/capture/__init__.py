"""Records of change data capture, decoded with what they tell, what they leave out, and why some are refused."""

"""Create, rename and drop tables in steps that can each be repeated; find what interrupted ones left."""

"""Figures of the papers, which are on other data sets; areas are multiplied by 100 there."""

# L2D-Clusters Table 1: three pairs of experts, K = 3
CLUSTERING = {"L2D-Pop": (-0.0606, -0.0870), "EA-L2D": (0.4444, 0.5024), "AnnotatorLDA": (0.4444, 0.6154)}

# L2D-Clusters Table 2, left: area over the number of clusters; right: cosine dissimilarity and area over alpha
AREA_BY_CLUSTERS = dict(zip(range(2, 11), (73.72, 74.27, 74.00, 74.23, 74.04, 74.19, 74.17, 74.05, 74.07), strict=True))
DISSIMILARITY_BY_ALPHA = {0.1: 0.0002, 0.9: 0.0009, 2.0: 0.0377, 10.0: 0.0406, 50.0: 0.0422}
AREA_BY_ALPHA = {0.1: 72.90, 0.9: 73.10, 2.0: 74.98, 10.0: 75.07, 50.0: 75.04}

# L2D-Clusters Table 3: area at the smaller and the larger number of labels
AREAS = {
    "CIFAR-100, N'=100 / 200": {
        "one-stage": (71.07, 73.87),
        "two-stage": (71.80, 75.02),
        "random expert": (73.60, 74.81),
        "population": (73.05, 70.59),
        "clusters, soft": (75.07, 76.68),
        "clusters, hard": (76.17, 77.31),
    },
    "dopanim, N'=100 / 200": {
        "one-stage": (69.42, 69.42),
        "two-stage": (73.35, 74.03),
        "random expert": (74.00, 73.67),
        "population": (65.23, 65.08),
        "clusters, soft": (74.61, 75.09),
        "clusters, hard": (78.12, 78.20),
    },
    "Chaoyang, N'=50 / 100": {
        "one-stage": (87.57, 87.97),
        "two-stage": (87.44, 89.31),
        "random expert": (86.46, 85.57),
        "population": (85.81, 86.09),
        "clusters, soft": (87.81, 89.69),
        "clusters, hard": (88.51, 90.09),
    },
}

# PL2D Table 1: area by share of missing annotations, CIFAR-100 with two experts and Chaoyang with two
MISSING = {
    "CIFAR-100": {
        "naive": {0.0: 75.38, 0.3: 72.80, 0.5: 70.83, 0.7: 67.68},
        "semi-supervised": {0.0: 75.38, 0.3: 67.39, 0.5: 67.27, 0.7: 66.52},
        "MixMatch": {0.0: 75.38, 0.3: 66.95, 0.5: 66.80, 0.7: 65.52},
        "latent": {0.0: 75.38, 0.3: 73.33, 0.5: 72.13, 0.7: 71.19},
    },
    "Chaoyang": {
        "naive": {0.0: 89.49, 0.3: 87.48, 0.5: 87.46, 0.7: 87.09},
        "semi-supervised": {0.0: 89.49, 0.3: 86.86, 0.5: 86.66, 0.7: 86.92},
        "MixMatch": {0.0: 89.49, 0.3: 86.90, 0.5: 88.12, 0.7: 87.11},
        "latent": {0.0: 89.49, 0.3: 90.50, 0.5: 90.03, 0.7: 88.41},
    },
}

# PL2D Table 3: GPU hours
HOURS = {
    "CIFAR-100, 2 experts": {"naive": "5.1", "semi-supervised": "10.9 + 5.1", "latent": "5.0"},
    "Chaoyang, 2 experts": {"naive": "1.8", "semi-supervised": "5.8 + 1.8", "latent": "3.8"},
    "MiceBone, 8 experts": {"naive": "4.4", "semi-supervised": "25.3 + 4.4", "latent": "12.8"},
}

# Multi-L2D, calibration error of expert correctness on CIFAR-10 by the number of experts
CALIBRATION = {
    1: (0.0608, 0.0230),
    4: (0.0488, 0.0253),
    8: (0.0513, 0.0218),
    12: (0.0477, 0.0215),
    16: (0.0404, 0.0203),
    20: (0.0462, 0.0219),
}  # softmax, one-vs-all

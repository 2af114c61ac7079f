module github.com/kvgate/kvgate/cuda/nvml

go 1.26.0

require (
	github.com/NVIDIA/go-nvml v0.13.4-1
	github.com/kvgate/kvgate v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/google/uuid v1.6.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/kvgate/kvgate => ../..

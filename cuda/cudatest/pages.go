package cudatest

// Where behaviours are stated: the vendor's pages, and this module's own for what
// [cuda.Device] promises beyond CUDA.
const (
	ownPage   = "package cuda, Device"
	driverAPI = "https://docs.nvidia.com/cuda/cuda-driver-api/"
	guide     = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/"
	ptxISA    = "https://docs.nvidia.com/cuda/parallel-thread-execution/"

	capturePage    = guide + "index.html#creating-a-graph-using-stream-capture"
	contextPage    = driverAPI + "group__CUDA__CTX.html"
	copySyncPage   = driverAPI + "api-sync-behavior.html"
	devicePage     = driverAPI + "group__CUDA__DEVICE.html"
	eventPage      = driverAPI + "group__CUDA__EVENT.html"
	graphPage      = driverAPI + "group__CUDA__GRAPH.html"
	launchPage     = driverAPI + "group__CUDA__EXEC.html"
	limitsPage     = guide + "#features-and-technical-specifications"
	maxntidPage    = ptxISA + "#performance-tuning-directives-maxntid"
	memoryPage     = driverAPI + "group__CUDA__MEM.html"
	modulePage     = driverAPI + "group__CUDA__MODULE.html"
	paramsPage     = ptxISA + "#kernel-function-parameters"
	peerPage       = driverAPI + "group__CUDA__PEER__ACCESS.html"
	streamPage     = driverAPI + "group__CUDA__STREAM.html"
	streamSyncPage = driverAPI + "stream-sync-behavior.html"
	typesPage      = driverAPI + "group__CUDA__TYPES.html"
	unifiedPage    = driverAPI + "group__CUDA__UNIFIED.html"
	wordPage       = driverAPI + "group__CUDA__MEMOP.html"
)

package movein

// vendor is a provider that other gateways know by a name.
type vendor struct {
	preset string   // id of ours that brings address and dialect along, or ""
	url    string   // without a preset
	env    []string // variables in which LiteLLM looks for the key
	base   string   // variable in which it looks for the address, of those that have none of their own
	local  bool     // needs no key
}

// vendors by the prefix that LiteLLM has for them in names of models; Bifrost's names are among them. Addresses are those of OpenAI's protocol in
// the vendors' documentation.
var vendors = map[string]vendor{
	"openai":                 {preset: "openai", env: []string{"OPENAI_API_KEY"}},
	"text-completion-openai": {preset: "openai", env: []string{"OPENAI_API_KEY"}},
	"custom_openai":          {preset: "openai", env: []string{"OPENAI_API_KEY"}},
	"anthropic":              {preset: "anthropic", env: []string{"ANTHROPIC_API_KEY"}},
	"gemini":                 {preset: "gemini", env: []string{"GEMINI_API_KEY"}},
	"groq":                   {preset: "groq", env: []string{"GROQ_API_KEY"}},
	"cerebras":               {preset: "cerebras", env: []string{"CEREBRAS_API_KEY"}},
	"openrouter":             {preset: "openrouter", env: []string{"OPENROUTER_API_KEY"}},
	"mistral":                {preset: "mistral", env: []string{"MISTRAL_API_KEY"}},
	"deepseek":               {preset: "deepseek", env: []string{"DEEPSEEK_API_KEY"}},
	"minimax":                {preset: "minimax", env: []string{"MINIMAX_API_KEY"}},
	"ollama":                 {preset: "ollama", base: "OLLAMA_API_BASE", local: true},
	"ollama_chat":            {preset: "ollama", base: "OLLAMA_API_BASE", local: true},
	"vllm":                   {preset: "vllm", base: "HOSTED_VLLM_API_BASE", local: true},
	"hosted_vllm":            {preset: "vllm", base: "HOSTED_VLLM_API_BASE", local: true},
	"lm_studio":              {preset: "lmstudio", base: "LM_STUDIO_API_BASE", local: true},
	"llamafile":              {url: "http://127.0.0.1:8080/v1", local: true},
	"openai_like":            {base: "OPENAI_LIKE_API_BASE", env: []string{"OPENAI_LIKE_API_KEY"}},
	"litellm_proxy":          {base: "LITELLM_PROXY_API_BASE", env: []string{"LITELLM_PROXY_API_KEY"}},
	"xinference":             {base: "XINFERENCE_API_BASE", local: true},
	"infinity":               {base: "INFINITY_API_BASE", local: true},
	"sgl":                    {local: true},
	"xai":                    {url: "https://api.x.ai/v1", env: []string{"XAI_API_KEY"}},
	"together_ai":            {url: "https://api.together.xyz/v1", env: []string{"TOGETHERAI_API_KEY"}},
	"fireworks_ai":           {url: "https://api.fireworks.ai/inference/v1", env: []string{"FIREWORKS_AI_API_KEY"}},
	"fireworks":              {url: "https://api.fireworks.ai/inference/v1"},
	"deepinfra":              {url: "https://api.deepinfra.com/v1/openai", env: []string{"DEEPINFRA_API_KEY"}},
	"nvidia_nim":             {url: "https://integrate.api.nvidia.com/v1", env: []string{"NVIDIA_NIM_API_KEY"}},
	"sambanova":              {url: "https://api.sambanova.ai/v1", env: []string{"SAMBANOVA_API_KEY"}},
	"hyperbolic":             {url: "https://api.hyperbolic.xyz/v1", env: []string{"HYPERBOLIC_API_KEY"}},
	"novita":                 {url: "https://api.novita.ai/v3/openai", env: []string{"NOVITA_API_KEY"}},
	"moonshot":               {url: "https://api.moonshot.ai/v1", env: []string{"MOONSHOT_API_KEY"}},
	"dashscope":              {url: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", env: []string{"DASHSCOPE_API_KEY"}},
	"zai":                    {url: "https://api.z.ai/api/paas/v4", env: []string{"ZAI_API_KEY"}},
	"volcengine":             {url: "https://ark.cn-beijing.volces.com/api/v3", env: []string{"VOLCENGINE_API_KEY"}},
	"nebius":                 {url: "https://api.studio.nebius.com/v1", env: []string{"NEBIUS_API_KEY"}},
	"cohere":                 {url: "https://api.cohere.ai/compatibility/v1", env: []string{"COHERE_API_KEY"}},
	"cohere_chat":            {url: "https://api.cohere.ai/compatibility/v1", env: []string{"COHERE_API_KEY"}},
	"huggingface":            {url: "https://router.huggingface.co/v1", env: []string{"HF_TOKEN"}},
	"codestral":              {url: "https://codestral.mistral.ai/v1", env: []string{"CODESTRAL_API_KEY"}},
	"parasail":               {url: "https://api.parasail.io/v1"},
}

// presetHosts are the usual addresses of the presets: one that the source gives need not be repeated.
var presetHosts = map[string]string{
	"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com", "groq": "https://api.groq.com/openai/v1", "cerebras": "https://api.cerebras.ai/v1",
	"openrouter": "https://openrouter.ai/api/v1", "mistral": "https://api.mistral.ai/v1", "deepseek": "https://api.deepseek.com/v1",
	"gemini": "https://generativelanguage.googleapis.com/v1beta/openai", "minimax": "https://api.minimax.io/v1",
	"ollama": "http://localhost:11434", "lmstudio": "http://localhost:1234/v1", "vllm": "http://localhost:8000/v1",
}

// noCounterpart are providers that sign requests, or speak protocols, in ways of their own.
var noCounterpart = map[string]string{
	"bedrock": "Amazon Bedrock wants signed requests", "bedrock_converse": "Amazon Bedrock wants signed requests", "bedrock_mantle": "Amazon Bedrock wants signed requests",
	"sagemaker": "Amazon SageMaker wants signed requests", "sagemaker_chat": "Amazon SageMaker wants signed requests",
	"vertex_ai": "Vertex AI wants tokens of a service account; Gemini models are also at the provider gemini, with a key",
	"vertex":    "Vertex AI wants tokens of a service account; Gemini models are also at the provider gemini, with a key",
	"azure_ai":  "Azure AI's own endpoints are not known here; those of Azure OpenAI are", "watsonx": "IBM watsonx wants tokens of its own", "oci": "Oracle wants signed requests",
	"replicate": "Replicate has a protocol of its own", "elevenlabs": "it has a protocol of its own", "deepgram": "it has a protocol of its own",
}

// refusal says why a provider is not taken.
func refusal(name string) string {
	if why, known := noCounterpart[name]; known {
		return why
	}
	return "there is no such provider here; one that speaks OpenAI's protocol can be added with its address"
}

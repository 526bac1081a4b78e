package check_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const root = "../../../"

// scaledObject is as much of KEDA's type as is used here.
type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		ScaleTargetRef                                                    struct{ Name string }
		MinReplicaCount, MaxReplicaCount, PollingInterval, CooldownPeriod int
		Triggers                                                          []struct {
			Type     string
			Metadata map[string]string
		}
	}
}

// workload is a Deployment or StatefulSet.
type workload struct {
	name     string
	replicas *int32
	selector *metav1.LabelSelector
	pod      corev1.PodTemplateSpec
}

// manifests are those of one kustomization.
type manifests struct {
	workloads  []workload
	budgets    []policyv1.PodDisruptionBudget
	policies   []networkingv1.NetworkPolicy
	services   []corev1.Service
	configs    []corev1.ConfigMap
	namespaces []corev1.Namespace
	scaled     []scaledObject
	ingresses  []networkingv1.Ingress
}

// build runs kustomize.
func build(t *testing.T, dir string) manifests {
	t.Helper()
	path, err := filepath.Abs("../" + dir)
	require.NoError(t, err)
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	require.NoError(t, err)
	var m manifests
	for _, r := range all.Resources() {
		text, err := r.AsYAML()
		require.NoError(t, err)
		m.add(t, text)
	}
	return m
}

// add reads an object strictly: a member that the type does not have is an error.
func (m *manifests) add(t *testing.T, text []byte) {
	t.Helper()
	var object metav1.PartialObjectMetadata
	require.NoError(t, yaml.Unmarshal(text, &object), string(text))
	name := object.Kind + " " + object.Name
	switch object.APIVersion + " " + object.Kind {
	case "apps/v1 Deployment":
		d := read[appsv1.Deployment](t, name, text)
		m.workloads = append(m.workloads, workload{d.Name, d.Spec.Replicas, d.Spec.Selector, d.Spec.Template})
	case "apps/v1 StatefulSet":
		s := read[appsv1.StatefulSet](t, name, text)
		m.workloads = append(m.workloads, workload{s.Name, s.Spec.Replicas, s.Spec.Selector, s.Spec.Template})
	case "policy/v1 PodDisruptionBudget":
		m.budgets = append(m.budgets, read[policyv1.PodDisruptionBudget](t, name, text))
	case "networking.k8s.io/v1 NetworkPolicy":
		m.policies = append(m.policies, read[networkingv1.NetworkPolicy](t, name, text))
	case "networking.k8s.io/v1 Ingress":
		m.ingresses = append(m.ingresses, read[networkingv1.Ingress](t, name, text))
	case "v1 Service":
		m.services = append(m.services, read[corev1.Service](t, name, text))
	case "v1 ConfigMap":
		m.configs = append(m.configs, read[corev1.ConfigMap](t, name, text))
	case "v1 Namespace":
		m.namespaces = append(m.namespaces, read[corev1.Namespace](t, name, text))
	case "keda.sh/v1alpha1 ScaledObject":
		m.scaled = append(m.scaled, read[scaledObject](t, name, text))
	default:
		t.Fatalf("%s %s is not known here", object.APIVersion, name)
	}
}

func read[T any](t *testing.T, name string, text []byte) (v T) {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict(text, &v), name)
	return v
}

// selected gives the workloads whose pods a selector selects.
func (m manifests) selected(t *testing.T, s *metav1.LabelSelector) (found []workload) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	require.NoError(t, err)
	for _, w := range m.workloads {
		if selector.Matches(labels.Set(w.pod.Labels)) {
			found = append(found, w)
		}
	}
	return found
}

// has says whether a pod has a port, by name or number.
func (w workload) has(port intstr.IntOrString) bool {
	return slices.ContainsFunc(w.pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
		return port.Type == intstr.String && p.Name == port.StrVal || port.Type == intstr.Int && p.ContainerPort == port.IntVal
	})
}

var gateway = []string{"analyzer", "dispatcher", "enricher", "ingress", "session-writer"}

// clusters are the manifests of five services, as kustomize and Helm make them.
func clusters(t *testing.T) map[string]manifests {
	t.Helper()
	return map[string]manifests{
		"base": build(t, "base"), "overlays/production": build(t, "overlays/production"), "chart": render(t, ""),
	}
}

// what is built are objects of Kubernetes; each workload is there, runs without rights, in more than one copy, is probed at ports and paths that exist, and may be
// disrupted one by one.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	health, err := os.ReadFile(root + "shared/telemetry/health.go")
	require.NoError(t, err)
	for _, m := range clusters(t) {
		var names []string
		for _, w := range m.workloads {
			names = append(names, w.name)
			require.Equal(t, []workload{w}, m.selected(t, w.selector), w.name)
			require.Len(t, w.pod.Spec.Containers, 1)
			if w.replicas != nil {
				require.GreaterOrEqual(t, *w.replicas, int32(2), w.name)
			}
			w.confined(t, string(health))
			m.complete(t, w)
		}
		slices.Sort(names)
		require.Equal(t, []string{"analyzer", "dispatcher", "enricher", "ingress", "nats", "session-writer"}, names)
		require.Len(t, m.budgets, len(m.workloads))
		m.served(t)
	}
}

// confined checks that the pods of a workload can do no more than serve, and are probed at ports and paths that exist.
func (w workload) confined(t *testing.T, health string) {
	t.Helper()
	c := w.pod.Spec.Containers[0]
	pod := w.pod.Spec.SecurityContext
	require.True(t, *pod.RunAsNonRoot && *pod.RunAsUser > 0 && pod.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, w.name)
	require.False(t, *w.pod.Spec.AutomountServiceAccountToken, w.name)
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem && !*c.SecurityContext.AllowPrivilegeEscalation, w.name)
	require.Equal(t, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, c.SecurityContext.Capabilities, w.name)
	require.NotZero(t, c.Resources.Requests.Cpu().MilliValue(), w.name)
	require.Positive(t, c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory()), w.name)
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		require.True(t, w.has(probe.HTTPGet.Port), "%s: %v", w.name, probe.HTTPGet.Port)
		if w.name != "nats" {
			require.Contains(t, health, probe.HTTPGet.Path+`"`, "an endpoint that exists")
		}
	}
	require.NotEqual(t, c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, "%s: who waits for another one is not dead", w.name)
}

// complete checks that a workload has one budget and the volumes that it mounts.
func (m manifests) complete(t *testing.T, w workload) {
	t.Helper()
	budgets := slices.DeleteFunc(slices.Clone(m.budgets), func(b policyv1.PodDisruptionBudget) bool {
		return len(m.selected(t, b.Spec.Selector)) != 1 || m.selected(t, b.Spec.Selector)[0].name != w.name
	})
	require.Len(t, budgets, 1, w.name)
	require.Equal(t, 1, budgets[0].Spec.MaxUnavailable.IntValue(), w.name)
	for _, mount := range w.pod.Spec.Containers[0].VolumeMounts {
		require.True(t, slices.ContainsFunc(w.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }) || mount.Name == "data", "%s: %s", w.name, mount.Name)
	}
}

// served checks that services lead to ports that exist.
func (m manifests) served(t *testing.T) {
	t.Helper()
	for _, s := range m.services {
		found := m.selected(t, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		require.Len(t, found, 1, s.Name)
		for _, p := range s.Spec.Ports {
			require.True(t, found[0].has(p.TargetPort), "%s: %s", s.Name, p.Name)
		}
	}
}

// an overlay runs one version of the gateway, pinned, in its namespace.
func TestImagesAreOfOneVersion(t *testing.T) {
	t.Parallel()
	m := build(t, "overlays/production")
	versions := map[string]bool{}
	for _, w := range m.workloads {
		image, tag, ok := strings.Cut(w.pod.Spec.Containers[0].Image, ":")
		require.True(t, ok && tag != "latest", w.name)
		if slices.Contains(gateway, w.name) {
			require.Equal(t, "hydrallm/"+w.name, image)
			versions[tag] = true
		}
	}
	require.Len(t, versions, 1)
	require.Len(t, m.namespaces, 1)
	require.Equal(t, "restricted", m.namespaces[0].Labels["pod-security.kubernetes.io/enforce"])
}

// nobody may talk to anybody but as the policies say, which speak of pods and ports that exist.
func TestPolicies(t *testing.T) {
	t.Parallel()
	for _, m := range clusters(t) {
		m.restricted(t)
	}
}

// restricted checks the policies.
func (m manifests) restricted(t *testing.T) {
	t.Helper()
	denied := false
	for _, p := range m.policies {
		found := m.selected(t, &p.Spec.PodSelector)
		require.NotEmpty(t, found, p.Name)
		if len(p.Spec.Ingress)+len(p.Spec.Egress) == 0 {
			require.Len(t, found, len(m.workloads))
			require.Len(t, p.Spec.PolicyTypes, 2)
			denied = true
		}
		for _, rule := range p.Spec.Ingress {
			m.peers(t, p.Name, rule.From)
			for _, port := range rule.Ports {
				for _, w := range found {
					require.True(t, w.has(*port.Port), "%s: %s has no port %v", p.Name, w.name, port.Port)
				}
			}
		}
		for _, rule := range p.Spec.Egress {
			targets := m.peers(t, p.Name, rule.To)
			for _, port := range rule.Ports {
				for _, w := range targets {
					require.True(t, w.has(*port.Port), "%s: %s has no port %v", p.Name, w.name, port.Port)
				}
				require.True(t, len(targets) > 0 || port.Port.Type == intstr.Int, "%s: outside of these pods a port is a number", p.Name)
			}
		}
	}
	require.True(t, denied, "nobody may do anything that is not said")
}

// peers gives the workloads that a rule names by their pods.
func (m manifests) peers(t *testing.T, policy string, peers []networkingv1.NetworkPolicyPeer) (found []workload) {
	t.Helper()
	for _, peer := range peers {
		if peer.PodSelector != nil && peer.NamespaceSelector == nil {
			targets := m.selected(t, peer.PodSelector)
			require.NotEmpty(t, targets, policy)
			found = append(found, targets...)
		}
	}
	return found
}

// pods have more time to stop than the configuration gives them, get every variable that the configuration asks for, and secrets only by reference.
func TestConfigurationFits(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "docs/clusters.md")
	require.NoError(t, err)
	for _, m := range clusters(t) {
		i := slices.IndexFunc(m.configs, func(c corev1.ConfigMap) bool { return strings.HasPrefix(c.Name, "hydrallm-config") })
		require.GreaterOrEqual(t, i, 0)
		text := m.configs[i].Data["config.yaml"]
		var config struct {
			Server struct {
				Stop  string `json:"stop_pause"`
				Drain string `json:"drain_timeout"`
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(text), &config))
		stop, err := time.ParseDuration(config.Server.Stop)
		require.NoError(t, err)
		drain, err := time.ParseDuration(config.Server.Drain)
		require.NoError(t, err)
		for _, w := range m.workloads {
			if !slices.Contains(gateway, w.name) {
				continue
			}
			grace := time.Duration(*w.pod.Spec.TerminationGracePeriodSeconds) * time.Second
			require.GreaterOrEqual(t, grace, stop+drain+10*time.Second, w.name)
			c := w.pod.Spec.Containers[0]
			readiness := time.Duration(c.ReadinessProbe.PeriodSeconds*c.ReadinessProbe.FailureThreshold) * time.Second
			require.Greater(t, stop, readiness, "a pod that stops must be known not to be ready before its port closes")
			for _, v := range regexp.MustCompile(`\$\{(\w+)\}`).FindAllStringSubmatch(text, -1) {
				own := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == v[1] })
				require.True(t, own || strings.Contains(string(page), "--from-literal="+v[1]+"="), "%s: who gives %s?", w.name, v[1])
			}
			database := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "DATABASE_URL" && e.ValueFrom != nil })
			require.Equal(t, w.name == "session-writer", database, "only the session-writer knows the database")
			require.True(t, slices.ContainsFunc(w.pod.Spec.Volumes, func(v corev1.Volume) bool {
				return v.Secret != nil && v.Secret.SecretName == "nats-identity-"+w.name
			}), "%s has its own identity", w.name)
		}
	}
}

// the autoscaler looks at a consumer that there is, and scales a workload that there is, whose number nobody else sets.
func TestAutoscaling(t *testing.T) {
	t.Parallel()
	rights, err := os.ReadFile(root + "deploy/nats/permissions.conf")
	require.NoError(t, err)
	m := build(t, "overlays/production")
	require.Len(t, m.scaled, 1)
	s := m.scaled[0].Spec
	i := slices.IndexFunc(m.workloads, func(w workload) bool { return w.name == s.ScaleTargetRef.Name })
	require.GreaterOrEqual(t, i, 0)
	require.Nil(t, m.workloads[i].replicas)
	require.GreaterOrEqual(t, s.MinReplicaCount, 2)
	require.Len(t, s.Triggers, 1)
	at := s.Triggers[0].Metadata
	require.Contains(t, string(rights), `"$JS.ACK.`+at["stream"]+"."+at["consumer"]+`.>"`)
	require.Contains(t, string(rights), "\n  "+at["account"]+" {")
	host, _, _ := strings.Cut(at["natsServerMonitoringEndpoint"], ".")
	require.True(t, slices.ContainsFunc(m.services, func(s corev1.Service) bool { return s.Name == host }))
}

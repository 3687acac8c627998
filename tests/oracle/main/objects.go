package main

// What an API server does to objects before a scheduler sees them: decoding, defaulting, admission, the pod strategy.
// The code is its own, except for the Priority plugin, which would refuse a given spec.priority (here it is kept).

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
)

var (
	decoder = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	podKind = corev1.SchemeGroupVersion.WithKind("Pod")
)

// world is what was read from a request.
type world struct {
	normalized bool
	warnings   *[]string
	objects    []runtime.Object
	pods       []*corev1.Pod
	runtimes   *runtimeclass.RuntimeClass
	seconds    *defaulttolerationseconds.Plugin
}

func (w *world) warn(format string, arguments ...any) {
	*w.warnings = append(*w.warnings, fmt.Sprintf(format, arguments...))
}

// read decodes the objects of a request and admits them.
func read(raw []json.RawMessage, normalized bool, warnings *[]string) (*world, error) {
	w := &world{normalized: normalized, warnings: warnings}
	var pods []*corev1.Pod
	for index, each := range raw {
		place := fmt.Sprintf("objects[%d]", index)
		object, err := w.decode(each, place, nil)
		if err != nil {
			return nil, err
		}
		if pod, isPod := object.(*corev1.Pod); isPod {
			pods = append(pods, pod)
			continue
		}
		if !known(object) {
			w.warn("%s: a %T does not bear on scheduling, ignored", place, object)
			continue
		}
		if err = identify(object); err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		w.objects = append(w.objects, object)
	}
	w.setStorageClasses()
	factory, _ := newFactory(w.objects)
	w.runtimes = runtimeclass.NewRuntimeClass()
	w.runtimes.SetExternalKubeClientSet(client)
	w.runtimes.SetExternalKubeInformerFactory(factory)
	w.seconds = defaulttolerationseconds.NewDefaultTolerationSeconds()
	w.seconds.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	for _, pod := range pods {
		admitted, err := w.admit(pod)
		if err != nil {
			return nil, err
		}
		if admitted.Status.Phase != corev1.PodSucceeded && admitted.Status.Phase != corev1.PodFailed {
			w.pods = append(w.pods, admitted)
		}
	}
	return w, nil
}

// incoming decodes and admits a pod that is to be placed.
func (w *world) incoming(raw json.RawMessage, place string) (*corev1.Pod, error) {
	object, err := w.decode(raw, place, &podKind)
	if err != nil {
		return nil, err
	}
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		return nil, fmt.Errorf("%s: a %T is not a pod", place, object)
	}
	return w.admit(pod)
}

func (w *world) decode(raw json.RawMessage, place string, kind *schema.GroupVersionKind) (runtime.Object, error) {
	object, _, err := decoder.Decode(raw, kind, nil)
	if err != nil {
		if object == nil || !runtime.IsStrictDecodingError(err) {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		w.warn("%s: %v", place, err)
	}
	if !w.normalized {
		legacyscheme.Scheme.Default(object)
	}
	return object, nil
}

func known(object runtime.Object) bool {
	for _, kind := range kinds {
		if fmt.Sprintf("%T", kind) == fmt.Sprintf("%T", object) {
			return true
		}
	}
	return false
}

// identify gives an object the identity that an API server would have given it.
func identify(object runtime.Object) error {
	about, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	if about.GetName() == "" {
		return errors.New("metadata.name is missing")
	}
	kind := strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1.")
	if namespaced(object) && about.GetNamespace() == "" {
		about.SetNamespace(metav1.NamespaceDefault)
	}
	if about.GetUID() == "" {
		about.SetUID(types.UID(kind + "/" + about.GetNamespace() + "/" + about.GetName()))
	}
	if about.GetResourceVersion() == "" {
		about.SetResourceVersion("1")
	}
	return nil
}

func namespaced(object runtime.Object) bool {
	switch strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1.") {
	case "Node", "Namespace", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver", "VolumeAttachment",
		"PriorityClass", "RuntimeClass", "ResourceSlice", "DeviceClass":
		return false
	}
	return true
}

// setStorageClasses gives claims without a class the default one, as admission does.
func (w *world) setStorageClasses() {
	var chosen *storagev1.StorageClass
	for _, object := range w.objects {
		class, isClass := object.(*storagev1.StorageClass)
		if isClass && class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			if chosen == nil || class.Name < chosen.Name {
				chosen = class
			}
		}
	}
	if chosen == nil || w.normalized {
		return
	}
	for _, object := range w.objects {
		claim, isClaim := object.(*corev1.PersistentVolumeClaim)
		if isClaim && claim.Spec.StorageClassName == nil && claim.Annotations[corev1.BetaStorageClassAnnotation] == "" {
			name := chosen.Name
			claim.Spec.StorageClassName = &name
		}
	}
}

// admit does to a pod what creating it does; its status is kept.
func (w *world) admit(pod *corev1.Pod) (*corev1.Pod, error) {
	if err := identify(pod); err != nil {
		return nil, err
	}
	if w.normalized {
		return pod, nil
	}
	w.setPriority(pod)
	var internal core.Pod
	if err := legacyscheme.Scheme.Convert(pod, &internal, nil); err != nil {
		return nil, err
	}
	ctx := context.Background()
	attributes := admission.NewAttributesRecord(&internal, nil, core.Kind("Pod").WithVersion("v1"), pod.Namespace, pod.Name,
		core.Resource("pods").WithVersion("v1"), "", admission.Create, &metav1.CreateOptions{}, false, nil)
	for _, plugin := range []admission.MutationInterface{w.seconds, w.runtimes} {
		if err := plugin.Admit(ctx, attributes, nil); err != nil {
			w.warn("%s/%s: %v", pod.Namespace, pod.Name, err)
		}
	}
	podregistry.Strategy.PrepareForCreate(ctx, &internal)
	if failed := podregistry.Strategy.Validate(ctx, &internal); len(failed) > 0 {
		w.warn("%s/%s: invalid: %v", pod.Namespace, pod.Name, failed.ToAggregate())
	}
	var admitted corev1.Pod
	if err := legacyscheme.Scheme.Convert(&internal, &admitted, nil); err != nil {
		return nil, err
	}
	admitted.Status = pod.Status
	return &admitted, nil
}

// setPriority resolves the priority class of a pod; a priority that is given is kept.
func (w *world) setPriority(pod *corev1.Pod) {
	name := pod.Spec.PriorityClassName
	value := int32(0)
	var policy *corev1.PreemptionPolicy
	switch name {
	case "system-cluster-critical":
		value = 2000000000
	case "system-node-critical":
		value = 2000001000
	default:
		class := w.priorityClass(name)
		if class != nil {
			value, policy = class.Value, class.PreemptionPolicy
			pod.Spec.PriorityClassName = class.Name
		} else if name != "" {
			w.warn("%s/%s: there is no PriorityClass %s", pod.Namespace, pod.Name, name)
		}
	}
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = &value
	}
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = policy
	}
	if pod.Spec.PreemptionPolicy == nil {
		lower := corev1.PreemptLowerPriority
		pod.Spec.PreemptionPolicy = &lower
	}
}

// priorityClass finds the class of that name; for no name, the least of the global defaults.
func (w *world) priorityClass(name string) *schedulingv1.PriorityClass {
	var found *schedulingv1.PriorityClass
	for _, object := range w.objects {
		class, isClass := object.(*schedulingv1.PriorityClass)
		if !isClass {
			continue
		}
		if name != "" && class.Name == name {
			return class
		}
		if name == "" && class.GlobalDefault && (found == nil || class.Value < found.Value) {
			found = class
		}
	}
	return found
}

// namespaces are Namespace objects for those that are used and not described.
func (w *world) namespaces(pods []*corev1.Pod) []runtime.Object {
	there := map[string]bool{}
	used := []string{metav1.NamespaceDefault}
	for _, object := range w.objects {
		about, _ := meta.Accessor(object)
		if _, isNamespace := object.(*corev1.Namespace); isNamespace {
			there[about.GetName()] = true
		} else if about.GetNamespace() != "" {
			used = append(used, about.GetNamespace())
		}
	}
	for _, pod := range append(append([]*corev1.Pod{}, w.pods...), pods...) {
		used = append(used, pod.Namespace)
	}
	var made []runtime.Object
	for _, name := range used {
		if there[name] {
			continue
		}
		there[name] = true
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("Namespace//" + name), ResourceVersion: "1",
			Labels: map[string]string{corev1.LabelMetadataName: name},
		}}
		made = append(made, namespace)
	}
	return made
}
